/** Who makes a change. It is recorded with the change. A `Principal` is an actor. */
export interface Actor {
  /** The subject of the principal. `operator` for a command that works on the stores. */
  readonly subject: string
  /** Identifies the credential without revealing it. */
  readonly fingerprint?: string | undefined
  /** The address of the client. */
  readonly address?: string | undefined
}
