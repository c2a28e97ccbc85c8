import type { Accounts } from './accounts.ts'
import type { ApiKeys } from './api-keys.ts'
import type { Blobs } from './blobs.ts'
import type { Garbage } from './garbage.ts'
import type { Manifests } from './manifests.ts'
import type { Marks } from './marks.ts'
import type { Repositories } from './repositories.ts'
import type { Tags } from './tags.ts'
import type { Uploads } from './uploads.ts'
import type { Users } from './users.ts'

/** What is known about the bytes, noun by noun. Absence is `undefined`; whether that is a refusal, the deeds decide. */
export interface Tables {
  readonly accounts: Accounts
  readonly repositories: Repositories
  readonly manifests: Manifests
  readonly tags: Tags
  readonly blobs: Blobs
  readonly uploads: Uploads
  readonly garbage: Garbage
  readonly users: Users
  readonly apiKeys: ApiKeys
  readonly marks: Marks
}

/**
 * Durable, transactional, and seen alike by all replicas: a read that begins after a write was acknowledged sees it.
 * Every rejection that is the engine's fault is `Unavailable`, with the engine's error as its cause.
 *
 * Invariants that every implementation keeps by itself, whatever the deeds do wrong:
 *  - a storage key stands in at most one row of uploads, blobs or trash; above all, never in the trash and elsewhere;
 *  - a manifest's entries and a tag's manifest exist as long as they are named (foreign keys, RESTRICT);
 *  - nothing of one account can be joined to another account's rows (the account leads every key).
 */
export interface MetadataStore extends Tables {
  /**
   * All of `work` or nothing, durable when this resolves. `work` sees its own writes; others see none of them before the
   * end. It may run more than once (an engine may ask to try again), so it must have no effect but on the tables it is
   * given, and must not wait for anything but them: no storage call, no network, no clock.
   */
  transaction<T>(work: (tables: Tables) => Promise<T>): Promise<T>

  /** Milliseconds since 1970 by the store's own clock, which all replicas share. */
  now(): Promise<number>

  /** Resolves when the store answers a query; rejects with `Unavailable` otherwise. */
  probe(): Promise<void>

  close(): Promise<void>
}
