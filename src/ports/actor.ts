/** Who makes a change. It is recorded with the change. */
export interface Actor {
  /** The subject of the principal. `operator` for a command that works on the stores. */
  readonly subject: string
}
