/** A private key that signs tokens, as a JSON Web Key; `kid` names it in each token's header. */
export interface SigningKey {
  readonly kid: string
  readonly privateJwk: Readonly<Record<string, unknown>>
}

/** Keeps the key of the embedded identity service, so that tokens outlive a restart. */
export interface SigningKeys {
  /** The key that signs now; made and kept durably by the first call if `generate` is needed. */
  current(generate: () => Promise<SigningKey>): Promise<SigningKey>
}
