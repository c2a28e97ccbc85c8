/** A private key that signs tokens. */
export interface SigningKey {
  /** The key id. The header of each token names it. */
  readonly kid: string
  /** Milliseconds since 1970. The ages of the keys decide which one signs, and how long an older one is accepted. */
  readonly createdAt: number
  /** A JSON Web Key. */
  readonly privateJwk: Readonly<Record<string, unknown>>
}

/** Stores the signing keys, so that tokens stay valid after a restart. Several processes may share the store. */
export interface SigningKeys {
  /** All keys, the oldest first. */
  list(): Promise<SigningKey[]>

  /** Atomic, and durable when it resolves. */
  add(key: SigningKey): Promise<void>

  /** Idempotent: to remove a key that does not exist is a success. */
  remove(kid: string): Promise<void>
}
