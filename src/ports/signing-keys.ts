/** A private key that signs tokens, as a JSON Web Key; `kid` names it in each token's header. */
export interface SigningKey {
  readonly kid: string
  /** Milliseconds since 1970: which key signs, and for how long an older one still counts, follows from it. */
  readonly createdAt: number
  readonly privateJwk: Readonly<Record<string, unknown>>
}

/** Keeps the keys that sign tokens, so that tokens outlive a restart. Several processes may share one keeper. */
export interface SigningKeys {
  /** All keys, oldest first; empty before the first is added. */
  list(): Promise<SigningKey[]>

  /** Durable, and whole or not at all, when this resolves. */
  add(key: SigningKey): Promise<void>

  /** Removing one that is gone already is no fault. */
  remove(kid: string): Promise<void>
}
