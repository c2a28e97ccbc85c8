import type { RunningHash } from '../lib/hashing.ts'
import type { Digest } from '../oci/digest.ts'
import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Upload, UploadId } from '../ports/uploads.ts'

/** A request of this process that writes to an upload. */
interface Writer {
  /** Since when it waits for its client, by `steadyNow`. Undefined while it does not. */
  waitsSince: number | undefined
  /** Whether another request has aborted it, and takes over after its end. */
  hasSuccessor: boolean
  /** The digest with which it closes the upload, if it does. */
  readonly closing: Digest | undefined
  /** The reason goes to the log. */
  readonly abort: (reason: string) => void
  readonly ended: Promise<void>
}

/** With this a writer records what it waits for. Nothing here waits. */
export interface WriterHandle {
  markWaitingForClient(): void
  /** A writer that does not wait for its client counts as alive, however long the store takes. */
  markWaitingForStore(): void
  /** The request could not release its turn: the next request does, and does not wait until the turn expires. */
  keepUnreleased(upload: Upload): void
  /** The request has ended: another one may write. */
  release(): void
}

/** The place of a repeated closing request that waits for the first one. */
export interface WaitingSlot extends Disposable {
  /**
   * Resolves when the session must be read again: the first request has ended or looks dead, or `steadyNow` has reached
   * `deadline`. If the writer may be in another process, it resolves after one polling interval. Rejects when the
   * client of this request is gone, or the server stops.
   */
  untilNextPoll(deadline: number): Promise<void>
}

/**
 * Ends the writer of the upload in another process of this server, and waits for its end; with `onlyIfDead` only if its
 * connection looks dead. Returns whether no other process has a writer of the upload now.
 */
export type EndElsewhere = (id: UploadId, onlyIfDead: boolean) => Promise<boolean>

/** Claims a turn of the metadata store. Undefined if another writer has it. */
type ClaimTurn = () => Promise<Upload | undefined>

interface KeptHash {
  readonly epoch: number
  readonly sizeBytes: number
  readonly hash: RunningHash
}

/** After so long without a byte, the connection of a writer may be dead, and its client may have come back. */
const deadAfterMs = 1_000

/** How often a repeated closing request polls: the writer of this process or, if there is none, the session's row. */
const pollEveryMs = 500

/** Limits the memory for hashes, and for unreleased turns, of uploads that no client continues. */
const keptMax = 2_000

/**
 * What this process knows about uploads between requests. Correctness does not depend on it: the metadata store decides
 * whose turn it is, and a missing hash is computed again from the stored bytes.
 */
export class UploadWriters {
  readonly #clock: Pick<Clock, 'steadyNow' | 'every'>
  readonly #endElsewhere: EndElsewhere | undefined
  readonly #writers = new Map<UploadId, Writer>()
  /** For each waiting request, the function that ends its wait. */
  readonly #waiting = new Map<UploadId, (reason: Error) => void>()
  readonly #hashes = new Map<UploadId, KeptHash>()
  /** Turns of this process whose release failed, because the metadata store failed. */
  readonly #unreleased = new Map<UploadId, Upload>()
  #isStopping = false

  constructor(clock: Pick<Clock, 'steadyNow' | 'every'>, endElsewhere?: EndElsewhere) {
    this.#clock = clock
    this.#endElsewhere = endElsewhere
  }

  /**
   * Registers a writer. Undefined if the upload has a writer that is alive. A writer that looks dead is aborted, and
   * one request waits for its end to take its place.
   */
  async enter(id: UploadId, abort: Writer['abort'], closing?: Digest): Promise<WriterHandle | undefined> {
    const present = this.#writers.get(id)
    if (present !== undefined) {
      if (!this.#looksDead(present) || present.hasSuccessor) return undefined
      present.hasSuccessor = true
      present.abort('another request goes on with the upload')
      await present.ended
      if (this.#writers.has(id)) return undefined
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const writer: Writer = { waitsSince: undefined, hasSuccessor: false, closing, abort, ended }
    this.#writers.set(id, writer)
    return {
      markWaitingForClient: () => {
        writer.waitsSince = this.#clock.steadyNow()
      },
      markWaitingForStore: () => {
        writer.waitsSince = undefined
      },
      keepUnreleased: (upload) => keep(this.#unreleased, id, upload),
      release: () => {
        this.#writers.delete(id)
        resolve()
      },
    }
  }

  /** As `EndElsewhere`, for the writer of this process. */
  async endHere(id: UploadId, onlyIfDead: boolean): Promise<boolean> {
    const writer = this.#writers.get(id)
    if (writer === undefined) return true
    if (onlyIfDead && !this.#looksDead(writer)) return false
    writer.abort('another request goes on with the upload')
    await writer.ended
    return true
  }

  /**
   * Claims the turn with `claim`. If this returns a turn, no other process of this server writes to the upload: a writer
   * of another process whose turn has expired may otherwise still write to the same file.
   */
  claimAlone(id: UploadId, claim: ClaimTurn, release: (turn: Upload) => Promise<unknown>): ReturnType<ClaimTurn> {
    return this.#endElsewhere === undefined ? claim() : this.#claimAmongOthers(id, claim, release, this.#endElsewhere)
  }

  async #claimAmongOthers(
    id: UploadId,
    claim: ClaimTurn,
    release: (turn: Upload) => Promise<unknown>,
    endElsewhere: EndElsewhere,
  ): ReturnType<ClaimTurn> {
    const upload = (await claim()) ?? ((await endElsewhere(id, true)) ? await claim() : undefined)
    if (upload === undefined || this.#isFirstOrOurs(upload) || (await endElsewhere(id, false))) return upload
    await release(upload)
    return undefined
  }

  /** No other process can be writing if this is the first turn, or the last turn was in this process. */
  #isFirstOrOurs({ id, epoch }: Upload): boolean {
    return epoch === 1 || this.#hashes.get(id)?.epoch === epoch - 1
  }

  /**
   * The writer of the upload in this process. `closing`: the digest with which it closes the upload, if it is alive.
   */
  find(id: UploadId): { readonly closing: Digest | undefined } | undefined {
    const writer = this.#writers.get(id)
    return writer && { closing: this.#looksDead(writer) ? undefined : writer.closing }
  }

  /**
   * Takes the only waiting slot of the upload, to wait for the request that closes it with `digest`. Undefined if the
   * slot is taken. There is one slot, because a waiting request keeps its connection and the part of its body that has
   * arrived.
   */
  waitFor(id: UploadId, digest: Digest, signal: AbortSignal | undefined): WaitingSlot | undefined {
    if (this.#waiting.has(id)) return undefined
    const { promise: interruption, reject } = Promise.withResolvers<never>()
    // It may reject between two waits. The next wait sees it.
    interruption.catch(() => undefined)
    const leave = () => reject(new RegistryRefusal('body-incomplete', { reason: 'the client closed the connection' }))
    if (this.#isStopping) reject(stopping())
    if (signal?.aborted) leave()
    signal?.addEventListener('abort', leave)
    this.#waiting.set(id, reject)
    return {
      untilNextPoll: (deadline) => this.#untilNextPoll(id, digest, deadline, interruption),
      [Symbol.dispose]: () => {
        signal?.removeEventListener('abort', leave)
        this.#waiting.delete(id)
      },
    }
  }

  /** If the writer is in this process, its end resolves this, and the timer does not cause queries. */
  async #untilNextPoll(id: UploadId, digest: Digest, deadline: number, interruption: Promise<never>): Promise<void> {
    const { promise: isDue, resolve } = Promise.withResolvers<void>()
    using _timer = this.#clock.every(pollEveryMs, () => {
      if (this.find(id)?.closing !== digest || this.#clock.steadyNow() >= deadline) resolve()
    })
    await Promise.race([interruption, isDue, this.#writers.get(id)?.ended ?? isDue])
  }

  #looksDead({ waitsSince }: Writer): boolean {
    return waitsSince !== undefined && this.#clock.steadyNow() - waitsSince >= deadAfterMs
  }

  /** Aborts the writer of the upload, if there is one in any process of this server, and waits for its end. */
  async abort(id: UploadId, reason: string): Promise<void> {
    await this.#abortHere(id, reason)
    await this.#endElsewhere?.(id, false)
  }

  async #abortHere(id: UploadId, reason: string): Promise<void> {
    const writer = this.#writers.get(id)
    writer?.abort(reason)
    await writer?.ended
    this.#hashes.delete(id)
  }

  /** The server stops: waiting requests end now, so that their clients can repeat them on another server. */
  stopWaiting(): void {
    this.#isStopping = true
    for (const end of this.#waiting.values()) end(stopping())
  }

  /** The server stops: aborts all writers. The bytes that they received are kept. */
  async abortAll(): Promise<void> {
    await Promise.all([...this.#writers.keys()].map((id) => this.#abortHere(id, 'the server is stopping')))
  }

  keepHash(upload: Upload, sizeBytes: number, hash: RunningHash): void {
    keep(this.#hashes, upload.id, { epoch: upload.epoch, sizeBytes, hash })
  }

  /** The hash of all bytes so far, if the turn just before this one was in this process and ended at the same size. */
  takeHash(upload: Upload): RunningHash | undefined {
    const kept = this.#hashes.get(upload.id)
    this.#hashes.delete(upload.id)
    const isUnbroken = kept?.epoch === upload.epoch - 1 && kept.sizeBytes === upload.object.sizeBytes
    return isUnbroken ? kept.hash : undefined
  }

  /** The turn that an earlier request of this process could not release, if there is one. */
  findUnreleased(id: UploadId): Upload | undefined {
    return this.#unreleased.get(id)
  }

  forgetUnreleased(id: UploadId): void {
    this.#unreleased.delete(id)
  }
}

/** Sets the entry as the newest one, and removes the oldest one above the limit. */
function keep<T>(entries: Map<UploadId, T>, id: UploadId, entry: T): void {
  entries.delete(id)
  entries.set(id, entry)
  const oldest = entries.keys().next().value
  if (entries.size > keptMax && oldest !== undefined) entries.delete(oldest)
}

function stopping(): Unavailable {
  return new Unavailable('server')
}
