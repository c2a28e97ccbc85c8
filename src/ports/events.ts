import type { Digest } from '../oci/digest.ts'
import type { RepositoryName, Tag } from '../oci/names.ts'
import type { Actor } from './actor.ts'
import type { RowId } from './row-id.ts'

/** What can happen. The names are stored, and are part of the interface of webhooks. `registry/event-types.ts` describes them. */
export type EventType = 'manifest.pushed' | 'manifest.deleted' | 'tag.created' | 'tag.moved' | 'tag.deleted'

/** A change to be recorded. The store adds the time and the name of the repository. */
export interface NewEvent {
  readonly type: EventType
  readonly repositoryId?: RowId | undefined
  readonly tag?: Tag | undefined
  readonly digest?: Digest | undefined
  readonly previousDigest?: Digest | undefined
  readonly actor: Actor
  /** What caused the change, if one type has several causes: `push`, `restore`, `manifest deleted`. */
  readonly cause?: string | undefined
  /** More about the change, as JSON. At most a few hundred bytes. */
  readonly data?: Readonly<Record<string, unknown>> | undefined
}

export interface RegistryEvent {
  /** The place in the order of all events. Larger than that of every event that could be read before. */
  readonly position: number
  readonly accountId: RowId
  readonly type: EventType
  readonly repository: RepositoryName | undefined
  readonly tag: Tag | undefined
  readonly digest: Digest | undefined
  readonly previousDigest: Digest | undefined
  /** Milliseconds since 1970, by the clock of the metadata store. */
  readonly at: number
  readonly actor: Actor
  readonly cause: string | undefined
  readonly data: Readonly<Record<string, unknown>> | undefined
}

/**
 * Events: one row for each change of content, written in the transaction of the change. `Tags` records the moves of tags by
 * itself; use cases record everything else with `add`.
 *
 * Positions are in the order of the commits, and changes of one tag or manifest are in the order in which they happened. So
 * a reader that continues behind the last position that it has seen misses no event. With PostgreSQL, events get their
 * position after the commit (`number`), because ids are taken in another order than transactions are committed.
 */
export interface Events {
  /** Inside the transaction of the change. */
  add(accountId: RowId, event: NewEvent): Promise<void>

  /** Whether some events have no position yet. */
  hasUnnumbered(): Promise<boolean>

  /**
   * Inside a transaction. Gives positions to at most `limit` committed events that have none, and returns their number. Waits
   * until no other transaction does the same.
   */
  number(limit: number): Promise<number>

  /** At most `limit` events of the account before `before`, the newest first. */
  listBefore(accountId: RowId, before: number | undefined, limit: number): Promise<RegistryEvent[]>

  /** At most `limit` events of the account after `after`, in the order of positions. */
  listAfter(accountId: RowId, after: number, limit: number): Promise<RegistryEvent[]>

  /** The same for all accounts. */
  listAllAfter(after: number, limit: number): Promise<RegistryEvent[]>

  /** The position of the last event that was passed on to webhooks. */
  findPassed(): Promise<number>

  /** Inside a transaction, which waits until no other one passes events on. As `findPassed`. */
  lockPassed(): Promise<number>

  /** Inside the transaction that has called `lockPassed`. */
  setPassed(position: number): Promise<void>

  /**
   * Inside a transaction. Removes those of the `limit` oldest events that are at least `keepMs` old and were passed on, except
   * the last one. Returns their number. Events of disabled accounts are removed too: they are no content.
   */
  removeOld(keepMs: number, limit: number): Promise<number>
}
