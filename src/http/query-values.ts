import { RegistryRefusal } from '../oci/errors.ts'

/** One query parameter is at fault. The reason continues the name: `must be a pattern`. */
export function queryInvalid(field: string, reason: string): RegistryRefusal {
  return new RegistryRefusal('query-invalid', { field, reason })
}

/** A parameter that is `true` or `false`. Absent: false. */
export function parseFlag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name)
  if (text === null || text === 'false') return false
  if (text === 'true') return true
  throw queryInvalid(name, 'must be true or false')
}
