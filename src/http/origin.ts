/** The address that the caller reached us by: the configured one, or else the request's own. */
export function originOf(request: Request, publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl
  const host = request.headers.get('host')
  return host === null ? 'http://localhost' : `http://${host}`
}
