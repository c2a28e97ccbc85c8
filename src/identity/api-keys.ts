import { formatTime } from '../lib/quantities.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { ApiKey, ApiKeys, KeyLimits } from '../ports/api-keys.ts'
import type { Clock } from '../ports/clock.ts'
import type { Principal } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { User } from '../ports/users.ts'
import { generateApiKey, hashApiKey } from './api-key-secrets.ts'
import type { KeyName } from './names.ts'
import { allRights, unlimitedRightsOf } from './rights.ts'
import { type UserCheck, userUnknown } from './users.ts'

type Needs = {
  readonly metadata: Pick<MetadataStore, 'transaction'>
  readonly clock: Pick<Clock, 'now'>
}

export interface NewKeyRequest extends KeyLimits {
  readonly name: KeyName
}

/**
 * The limits of a key that `creator` creates. A key never has more rights than its creator and never lasts longer, also
 * if its user gets more roles later. Limits that the request does not set are those of the creator.
 */
export function limitToCreator(requested: KeyLimits, creator: Principal): KeyLimits {
  const creatorRights = unlimitedRightsOf(creator)
  if (!new Set(requested.rights).isSubsetOf(creatorRights)) {
    throw new RegistryRefusal('denied', {
      field: 'rights',
      reason: `must be among yours: ${[...creatorRights].join(', ')}`,
    })
  }
  const hasAllRights = allRights.every((right) => creatorRights.has(right))
  const rights = requested.rights ?? (hasAllRights ? undefined : [...creatorRights])
  const end = creator.keyExpiresAt
  if (end !== undefined && (requested.expiresAt ?? end) > end) {
    throw new RegistryRefusal('denied', {
      field: 'expiresAt',
      reason: `must be no later than ${formatTime(end)}, when the key of the caller expires`,
    })
  }
  return { ...requested, rights, expiresAt: requested.expiresAt ?? end }
}

/** Creates a key and returns its secret, which is not stored and cannot be shown again. */
export async function createApiKey(
  { metadata, clock }: Needs,
  userName: string,
  { name, ...limits }: NewKeyRequest,
  keysMax: number,
  check: UserCheck = () => undefined,
): Promise<string> {
  if (limits.expiresAt !== undefined && limits.expiresAt <= clock.now()) {
    throw new RegistryRefusal('identity-invalid', { field: 'expiresAt', reason: 'must be in the future' })
  }
  const secret = generateApiKey()
  await metadata.transaction(async ({ users, apiKeys }) => {
    const user = await users.findLocked(userName)
    if (user === undefined) throw userUnknown(userName)
    check(user)
    const existing = await apiKeys.list(user.id)
    if (existing.some((key) => key.name === name)) throw new RegistryRefusal('key-exists', { key: name })
    if (existing.length >= keysMax) throw new RegistryRefusal('too-many-keys', { max: keysMax })
    const isNew = await apiKeys.add({ userId: user.id, name, secretHash: hashApiKey(secret), ...limits })
    if (!isNew) throw new RegistryRefusal('key-exists', { key: name })
  })
  return secret
}

export function listApiKeys({ apiKeys }: { readonly apiKeys: Pick<ApiKeys, 'list'> }, user: User): Promise<ApiKey[]> {
  return apiKeys.list(user.id)
}

export async function revokeApiKey(
  { apiKeys }: { readonly apiKeys: Pick<ApiKeys, 'remove'> },
  user: User,
  name: string,
): Promise<void> {
  if (!(await apiKeys.remove(user.id, name))) throw new RegistryRefusal('key-unknown', { key: name.slice(0, 64) })
}

/** What the API and the command line show of a key. */
export function showApiKey({ name, createdAt, expiresAt, lastUsedAt, rights, repositories }: ApiKey) {
  return {
    name,
    createdAt: formatTime(createdAt),
    expiresAt: formatTime(expiresAt),
    lastUsedAt: formatTime(lastUsedAt),
    rights: rights ?? null,
    repositories: repositories ?? null,
  }
}

const pendingUsesMax = 10_000

/** Collects which keys were used. One write records them all from time to time, so no request waits for it. */
export class KeyUseRecorder {
  readonly #apiKeys: Pick<ApiKeys, 'recordUses'>
  readonly #pending = new Set<RowId>()

  constructor(apiKeys: Pick<ApiKeys, 'recordUses'>) {
    this.#apiKeys = apiKeys
  }

  add(id: RowId): void {
    if (this.#pending.size < pendingUsesMax) this.#pending.add(id)
  }

  /** Uses that cannot be written are dropped: `lastUsedAt` is approximate. */
  async flush(): Promise<void> {
    if (this.#pending.size === 0) return
    const ids = [...this.#pending]
    this.#pending.clear()
    await this.#apiKeys.recordUses(ids)
  }
}
