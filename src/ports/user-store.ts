/** A record of the embedded identity service. */
export interface User {
  readonly id: number
  readonly name: string
  /** Argon2id in its own text form; without one the user cannot log in by password. */
  readonly passwordHash: string | undefined
  readonly roles: readonly string[]
  readonly account: string
  readonly isDisabled: boolean
}

/** An API key as it is kept: its hash, never the key. */
export interface ApiKey {
  readonly name: string
  readonly user: User
  readonly expiresAt: number | undefined
}

/** Where the embedded identity service keeps its users and keys. */
export interface UserStore {
  findUser(name: string): Promise<User | undefined>

  /** Adds the user, or gives the one of that name new roles, password and account. */
  saveUser(user: Omit<User, 'id'>): Promise<User>

  /** The key with this hash, if it was not revoked; expiry is for the caller to judge. */
  findApiKey(secretHash: string): Promise<ApiKey | undefined>

  /** Gives the user a key of this name in place of the one that had it, if there was one. */
  saveApiKey(userId: number, name: string, secretHash: string, expiresAt: number | undefined): Promise<void>

  /** Whether the user has any key, without knowing it. */
  hasApiKey(userId: number): Promise<boolean>
}
