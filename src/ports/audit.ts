import type { RowId } from './row-id.ts'

/** `refused`: the request changed nothing. */
export type AuditOutcome = 'done' | 'refused'

/** Who did what. It contains no secret: neither a credential nor a query nor a body. */
export interface NewAuditEntry {
  /** The name of the account whose operators see the entry. Undefined: only the operators of the registry see it. */
  readonly account: string | undefined
  /** The subject of the caller. Undefined if the caller is unknown. */
  readonly actor: string | undefined
  /** The fingerprint of the credential. */
  readonly credential: string | undefined
  /** The name of the API key. */
  readonly keyName: string | undefined
  readonly address: string | undefined
  /** `login`, an operation of the HTTP API such as `postUser`, or a command such as `berth account disable`. */
  readonly action: string
  /** The path of the request, or the arguments of the command. */
  readonly target: string | undefined
  readonly repository: string | undefined
  readonly outcome: AuditOutcome
  /** Why it was refused. */
  readonly reason: string | undefined
  /** How many times it happened. Logins and refusals that are alike are counted in one entry. */
  readonly count: number
  /** The first time, in milliseconds since 1970. */
  readonly happenedAt: number
}

export interface AuditPosition {
  readonly happenedAt: number
  readonly id: RowId
}

export interface AuditEntry extends NewAuditEntry, AuditPosition {}

/** An undefined member means any. */
export interface AuditFilter {
  readonly actor?: string | undefined
  readonly action?: string | undefined
  readonly repository?: string | undefined
  readonly outcome?: AuditOutcome | undefined
  /** The first time of the range, in milliseconds since 1970. */
  readonly since?: number | undefined
  /** The end of the range. Not included. */
  readonly until?: number | undefined
}

export interface AuditBatch {
  readonly entries: readonly AuditEntry[]
  /** The last entry that the store has looked at. Undefined if there are no more. */
  readonly next: AuditPosition | undefined
}

/**
 * The audit log. Nothing changes an entry, and only its age removes it. Two classes have different guarantees:
 *  - changes: the entry is durable before the request is acknowledged, or before the command ends. A crash between the
 *    change and its entry leaves a change that was not acknowledged;
 *  - logins and refusals: written in batches, so a crash loses those of the last seconds.
 *
 * A change of content (of manifests and tags) has no entry of its own: its event is its entry. `listEvents` reads events in
 * the form of entries.
 */
export interface Audit {
  /** Adds all of the entries or none. */
  add(entries: readonly NewAuditEntry[]): Promise<void>

  /**
   * Looks at the next `lookAt` entries before `before`, the newest first, and returns at most `limit` that match the filter.
   * Undefined `account`: entries of all accounts and of none.
   */
  list(
    account: string | undefined,
    filter: AuditFilter,
    before: AuditPosition | undefined,
    range: { readonly limit: number; readonly lookAt: number },
  ): Promise<AuditBatch>

  /**
   * As `list`, for the events of the account, or of all accounts. They are in the order of their positions, so the time of an
   * event can be some seconds after the time of the event before it in the list. The id is the position.
   */
  listEvents(
    accountId: RowId | undefined,
    filter: AuditFilter,
    before: RowId | undefined,
    range: { readonly limit: number; readonly lookAt: number },
  ): Promise<AuditBatch>

  /** Removes at most `limit` entries that are at least `keepMs` old, the oldest first. Returns their number. */
  removeOld(keepMs: number, limit: number): Promise<number>
}
