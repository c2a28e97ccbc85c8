// Users and keys in memory, for tests of the embedded identity service.
import type { ApiKey, User, UserStore } from '../../src/ports/user-store.ts'

interface StoredKey {
  readonly name: string
  readonly userId: number
  readonly secretHash: string
  readonly expiresAt: number | undefined
}

export class MemoryUsers implements UserStore {
  readonly users: User[] = []
  readonly keys: StoredKey[] = []
  /** How often a user was written. */
  saves = 0

  async findUser(name: string): Promise<User | undefined> {
    return this.users.find((user) => user.name === name)
  }

  async saveUser(given: Omit<User, 'id'>): Promise<User> {
    this.saves += 1
    const at = this.users.findIndex(({ name }) => name === given.name)
    const user = { ...given, id: at === -1 ? this.users.length + 1 : at + 1 }
    this.users[user.id - 1] = user
    return user
  }

  async findApiKey(secretHash: string): Promise<ApiKey | undefined> {
    const key = this.keys.find((one) => one.secretHash === secretHash)
    const user = this.users.find(({ id }) => id === key?.userId)
    return key && user && { name: key.name, user, expiresAt: key.expiresAt }
  }

  async saveApiKey(userId: number, name: string, secretHash: string, expiresAt: number | undefined): Promise<void> {
    const at = this.keys.findIndex((key) => key.userId === userId && key.name === name)
    this.keys[at === -1 ? this.keys.length : at] = { userId, name, secretHash, expiresAt }
  }

  async hasApiKey(userId: number): Promise<boolean> {
    return this.keys.some((key) => key.userId === userId)
  }
}

export function user(rest: Partial<User> = {}): User {
  return { id: 1, name: 'ann', passwordHash: undefined, roles: ['writer'], account: 'acme', isDisabled: false, ...rest }
}
