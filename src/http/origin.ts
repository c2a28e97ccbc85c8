import { RegistryRefusal } from '../oci/errors.ts'

const hostPattern = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d+)?$/i

/** RFC 9112, 3.2: a request with two Host lines, or with one that is no host, MUST be answered with 400. */
export function checkHost(host: string | null): void {
  if (host !== null && !hostPattern.test(host)) throw new RegistryRefusal('host-invalid')
}

/** The address that the caller reached us by: the configured one, or else the request's own. */
export function originOf(request: Request, publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl
  const host = request.headers.get('host')
  return host === null ? 'http://localhost' : `http://${host}`
}
