import { RegistryRefusal } from '../oci/errors.ts'

export interface RequestedPage {
  readonly after: string | undefined
  readonly limit: number | undefined
}

const wholeNumber = /^\d+$/

/** `n` and `last`. An `n` above the maximum is cut down to it: the answer then carries a `Link` to the rest. */
export function parsePage(query: URLSearchParams, limitMax: number): RequestedPage {
  const n = query.get('n')
  const after = parseAfter(query)
  if (n === null) return { after, limit: undefined }
  if (!wholeNumber.test(n)) throw new RegistryRefusal('page-size-invalid', { n: n.slice(0, 32) })
  return { after, limit: Math.min(Number(n), limitMax) }
}

/** `last`, cut before its first NUL: nothing that is listed has a NUL in its name, and PostgreSQL takes no text with one. */
export function parseAfter(query: URLSearchParams): string | undefined {
  return query.get('last')?.replace(/\0.*/s, '')
}
