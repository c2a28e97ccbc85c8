import { RegistryRefusal } from '../oci/errors.ts'

export interface RequestedPage {
  readonly after: string | undefined
  readonly limit: number | undefined
}

const wholeNumber = /^\d+$/

/**
 * `n` and `last`. What stands behind a NUL decides nothing, because no name has one, and some databases take none. An `n` above the maximum is cut down to it: the answer then carries a `Link` to the rest.
 */
export function parsePage(query: URLSearchParams, limitMax: number): RequestedPage {
  const n = query.get('n')
  const after = query.get('last')?.replace(/\0.*/s, '')
  if (n === null) return { after, limit: undefined }
  if (!wholeNumber.test(n)) throw new RegistryRefusal('page-size-invalid', { n: n.slice(0, 32) })
  return { after, limit: Math.min(Number(n), limitMax) }
}
