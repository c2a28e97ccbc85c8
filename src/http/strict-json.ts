import { RegistryRefusal } from '../oci/errors.ts'
import { findJsonFault } from '../oci/json-scan.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })
const depthMax = 32

/** Parses JSON that has one meaning for every reader: UTF-8, without repeated members, and not deeply nested. */
export function parseStrictJson(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw bodyInvalid('must be UTF-8')
  }
  const fault = findJsonFault(text, depthMax)
  // If a member is given twice, one reader uses the first and another the last.
  if (fault?.kind === 'duplicate key') throw fieldInvalid(showName(fault.key), 'must be given once')
  if (fault?.kind === 'too deep') throw bodyInvalid(`must not be nested deeper than ${depthMax}`)
  try {
    return JSON.parse(text)
  } catch {
    throw bodyInvalid('must be JSON')
  }
}

/** The body as a whole is at fault. The reason continues `the request body is not valid`. */
export function bodyInvalid(reason: string): RegistryRefusal {
  return new RegistryRefusal('body-invalid', { reason })
}

/** One field is at fault, for example `roles[1]`. The reason continues the name: `must be a string`. */
export function fieldInvalid(field: string, reason: string): RegistryRefusal {
  return new RegistryRefusal('body-invalid', { field, reason })
}

/** The name of a member as an error message shows it. */
export function showName(name: string): string {
  return /^\w{1,64}$/.test(name) ? name : JSON.stringify(name.slice(0, 64))
}
