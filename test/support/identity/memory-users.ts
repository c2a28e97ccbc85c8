// Users and keys in memory, for tests of the embedded identity service.
import type { ApiKey, ApiKeys, NewApiKey } from '../../../src/ports/api-keys.ts'
import type { NewUser, User, UserChange, Users } from '../../../src/ports/users.ts'

export class MemoryUsers implements Users {
  readonly users: User[] = []
  /** How often a user was written. */
  saves = 0

  async find(name: string): Promise<User | undefined> {
    return this.users.find((user) => user.name === name)
  }

  async findLocked(name: string): Promise<User | undefined> {
    return this.find(name)
  }

  async lockAccount(): Promise<void> {}

  async count(account: string): Promise<number> {
    return this.users.filter((user) => user.account === account).length
  }

  async list(account: string | undefined, after = '', limit: number): Promise<User[]> {
    const all = this.users.filter((user) => user.name > after && (account === undefined || user.account === account))
    return all.sort((one, other) => (one.name < other.name ? -1 : 1)).slice(0, limit)
  }

  async add(given: NewUser): Promise<User | undefined> {
    if (this.users.some((user) => user.name === given.name)) return undefined
    this.saves += 1
    const user = { ...given, id: this.users.length + 1, tokenEpoch: 0 }
    this.users.push(user)
    return user
  }

  async change(id: number, change: UserChange): Promise<User | undefined> {
    const at = this.users.findIndex((user) => user.id === id)
    const known = this.users[at]
    if (known === undefined) return undefined
    this.saves += 1
    const endsTokens = change.passwordHash !== undefined || change.isDisabled === true
    const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
    const user: User = { ...known, ...given, tokenEpoch: known.tokenEpoch + (endsTokens ? 1 : 0) }
    this.users[at] = user
    return user
  }
}

interface KeptKey {
  readonly key: ApiKey
  readonly userId: number
  readonly secretHash: string
}

export class MemoryApiKeys implements ApiKeys {
  readonly kept: KeptKey[] = []
  readonly #users: MemoryUsers
  #lastId = 0

  constructor(users: MemoryUsers) {
    this.#users = users
  }

  async find(secretHash: string): Promise<{ key: ApiKey; user: User } | undefined> {
    const found = this.kept.find((one) => one.secretHash === secretHash)
    const owner = this.#users.users.find(({ id }) => id === found?.userId)
    return found && owner && { key: found.key, user: owner }
  }

  async list(userId: number): Promise<ApiKey[]> {
    const keys = this.kept.filter((one) => one.userId === userId).map(({ key }) => key)
    return keys.sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  async add({ userId, secretHash, ...rest }: NewApiKey): Promise<boolean> {
    if (this.#at(userId, rest.name) !== -1) return false
    if (this.kept.some((one) => one.secretHash === secretHash)) throw new Error('the hash is taken')
    if (!this.#users.users.some(({ id }) => id === userId)) throw new Error('there is no such user')
    this.#lastId += 1
    this.kept.push({ userId, secretHash, key: { ...rest, id: this.#lastId, createdAt: 0, lastUsedAt: undefined } })
    return true
  }

  async remove(userId: number, name: string): Promise<boolean> {
    const at = this.#at(userId, name)
    if (at === -1) return false
    this.kept.splice(at, 1)
    return true
  }

  async hasAnyBeenUsed(): Promise<boolean> {
    return this.kept.some(({ key }) => key.lastUsedAt !== undefined)
  }

  async recordUses(ids: readonly number[]): Promise<void> {
    for (const [at, one] of this.kept.entries()) {
      if (ids.includes(one.key.id)) this.kept[at] = { ...one, key: { ...one.key, lastUsedAt: 1 } }
    }
  }

  #at(userId: number, name: string): number {
    return this.kept.findIndex((one) => one.userId === userId && one.key.name === name)
  }
}

export function user(rest: Partial<User> = {}): User {
  return {
    id: 1,
    name: 'ann',
    passwordHash: undefined,
    roles: ['writer'],
    account: 'acme',
    isDisabled: false,
    tokenEpoch: 0,
    ...rest,
  }
}
