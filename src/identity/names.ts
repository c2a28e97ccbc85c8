import { RegistryRefusal } from '../oci/errors.ts'

// The names of users, roles and API keys, and their parsers.

/** Only `parseUserName` and `isUserName` create it. */
export type UserName = string & { readonly __brand: 'UserName' }

export const userNamePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/

/**
 * With one of these user names, the password of Basic credentials is an API key or a token. A new user cannot have such
 * a name, in upper or lower case, because it would be confusing. An existing user with a name such as `ApiKey` can log
 * in.
 */
export const reservedNames: ReadonlySet<string> = new Set(['apikey', 'bearer'])

export function isUserName(text: string): text is UserName {
  return userNamePattern.test(text) && !reservedNames.has(text)
}

export function parseUserName(text: string): UserName {
  const isReserved = reservedNames.has(text.toLowerCase())
  if (!isReserved && isUserName(text)) return text
  throw new RegistryRefusal('identity-invalid', {
    field: 'name',
    reason: isReserved
      ? `must not be ${text}, which is reserved for signing in with keys and tokens`
      : 'must be 1 to 128 letters, digits and . _ @ + -, beginning with a letter or a digit',
  })
}

export const rolesMax = 32
export const rolePattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/

export function parseRoles(given: readonly string[]): readonly string[] {
  if (given.length > rolesMax) {
    throw new RegistryRefusal('identity-invalid', { field: 'roles', reason: `must have at most ${rolesMax} entries` })
  }
  const bad = given.findIndex((role) => !rolePattern.test(role))
  if (bad === -1) return [...new Set(given)]
  throw new RegistryRefusal('identity-invalid', {
    field: `roles[${bad}]`,
    reason: 'must be 1 to 64 letters, digits and . _ : -, beginning with a letter or a digit',
  })
}

/** The name of a key, unique among the keys of its user. Only `parseKeyName` creates it. */
export type KeyName = string & { readonly __brand: 'KeyName' }

export const keyNamePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/

/**
 * The name of the administrator's key in the configuration. The key exists as long as the configuration contains it.
 */
export const presetKeyName = 'preset'

export function parseKeyName(text: string): KeyName {
  if (text === presetKeyName) {
    throw new RegistryRefusal('identity-invalid', {
      field: 'name',
      reason: `must not be ${presetKeyName}, which is the key of the configuration`,
    })
  }
  if (keyNamePattern.test(text)) return text as KeyName
  throw new RegistryRefusal('identity-invalid', {
    field: 'name',
    reason: 'must be 1 to 64 letters, digits and . _ @ + -, beginning with a letter or a digit',
  })
}
