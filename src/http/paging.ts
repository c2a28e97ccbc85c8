import { RegistryRefusal } from '../oci/errors.ts'
import type { Application } from './exchange.ts'

export interface RequestedPage {
  readonly after: string | undefined
  readonly limit: number | undefined
}

const wholeNumber = /^\d+$/

/** Parses `n` and `last`. An `n` above the maximum is reduced to it; the answer then has a `Link` to the rest. */
export function parsePage(query: URLSearchParams, limitMax: number): RequestedPage {
  const n = query.get('n')
  const after = parseAfter(query)
  if (n === null) return { after, limit: undefined }
  if (!wholeNumber.test(n)) throw new RegistryRefusal('page-size-invalid', { n: n.slice(0, 32) })
  return { after, limit: Math.min(Number(n), limitMax) }
}

/** `last`, cut before its first NUL: no listed name contains a NUL, and PostgreSQL accepts no text with one. */
export function parseAfter(query: URLSearchParams): string | undefined {
  return query.get('last')?.replace(/\0.*/s, '')
}

/** A `last` that the sealer of the registry made. Undefined for every other text: the list begins at its start. */
export function openPosition({ sealer }: Pick<Application, 'sealer'>, last: string | undefined): string | undefined {
  return last === undefined ? undefined : sealer.open(last)
}

/** The `Link` to the entries after `last`; none if `last` is undefined. */
export function nextPageHeaders(path: string, limit: number, last: string | undefined): Record<string, string> {
  return last === undefined ? {} : { link: nextPageLink(path, { n: String(limit), last }) }
}

/** `<...>; rel="next"`, the form that the distribution-spec requires. */
export function nextPageLink(path: string, parameters: Readonly<Record<string, string | readonly string[]>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of typeof value === 'string' ? [value] : value) query.append(name, one)
  }
  return `<${path}?${query}>; rel="next"`
}
