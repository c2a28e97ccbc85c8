import type { RunningHash } from '../lib/hashing.ts'
import type { Digest } from '../oci/digest.ts'
import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Upload, UploadId } from '../ports/uploads.ts'

/** A request that is writing to an upload right now, in this process. */
interface Writer {
  /** Since when it waits for its sender; undefined while it works by itself. */
  waitsSince: number | undefined
  /** Whether another request has stopped it and waits for its end, to go on after it. */
  hasSuccessor: boolean
  /** The digest with which it closes the upload, if it does. */
  readonly closing: Digest | undefined
  /** With the reason, for the log. */
  readonly stop: (reason: string) => void
  readonly ended: Promise<void>
}

/** For a writer to tell what it does. */
export interface WriterHandle {
  awaitSender(): void
  /** It has what it needs of its sender, for now, and works: it is alive, however long that takes. */
  awaitStore(): void
  end(): void
}

/** The place of a request that repeats a closing request and waits for the first one. */
export interface WaitingSlot extends Disposable {
  /**
   * Resolves when the session must be looked at again: the first request has ended or looks dead, or `steadyNow` has
   * reached `deadline`, or, where another process may have the writer, some time has passed. Rejects when the sender of
   * this request is gone, or the server stops.
   */
  untilNextLook(deadline: number): Promise<void>
}

interface KeptHash {
  readonly epoch: number
  readonly sizeBytes: number
  readonly hash: RunningHash
}

/** A writer that has waited for its sender for this long may be a dead connection whose client has come back. */
const deadAfterMs = 1_000

/** A repeated closing request looks this often: here at the writer, and otherwise at the session in the metadata store. */
const lookAgainMs = 500

/** Kept hashes are small, but a session that nobody continues must not keep its own for ever. */
const keptHashesMax = 2_000

/**
 * What this process remembers of uploads between requests. Nothing here is needed for correctness: the metadata store
 * decides whose turn it is, and a hash that is not here is computed again from the stored bytes.
 */
export class UploadWriters {
  readonly #clock: Pick<Clock, 'steadyNow' | 'every'>
  readonly #writers = new Map<UploadId, Writer>()
  /** How to end the wait of the request in each waiting place. */
  readonly #waiting = new Map<UploadId, (reason: Error) => void>()
  #isStopping = false
  readonly #hashes = new Map<UploadId, KeptHash>()

  constructor(clock: Pick<Clock, 'steadyNow' | 'every'>) {
    this.#clock = clock
  }

  /**
   * Announces a writer. A writer before it that looks dead is stopped, and one request waits for its end. The answer is
   * undefined for every other request, and while the writer before it is alive.
   */
  async enter(id: UploadId, stop: Writer['stop'], closing?: Digest): Promise<WriterHandle | undefined> {
    const before = this.#writers.get(id)
    if (before !== undefined) {
      if (!this.#looksDead(before) || before.hasSuccessor) return undefined
      before.hasSuccessor = true
      before.stop('another request goes on with the upload')
      await before.ended
      if (this.#writers.has(id)) return undefined
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const writer: Writer = { waitsSince: undefined, hasSuccessor: false, closing, stop, ended }
    this.#writers.set(id, writer)
    return {
      awaitSender: () => {
        writer.waitsSince = this.#clock.steadyNow()
      },
      awaitStore: () => {
        writer.waitsSince = undefined
      },
      end: () => {
        this.#writers.delete(id)
        resolve()
      },
    }
  }

  /** The writer of the upload in this process: as what it closes the upload, if it is alive, and when it ends. */
  find(id: UploadId): { readonly closing: Digest | undefined; readonly ended: Promise<void> } | undefined {
    const writer = this.#writers.get(id)
    if (writer === undefined) return undefined
    return { closing: this.#looksDead(writer) ? undefined : writer.closing, ended: writer.ended }
  }

  /**
   * A place to wait for the request that closes the upload as `digest`. Each upload has one place, because a request that
   * waits keeps its connection and the part of its body that has arrived. Undefined when the place is taken.
   */
  waitFor(id: UploadId, digest: Digest, signal: AbortSignal | undefined): WaitingSlot | undefined {
    if (this.#waiting.has(id)) return undefined
    const { promise: cut, reject } = Promise.withResolvers<never>()
    // The rejection may come while nobody waits; the next wait finds it.
    cut.catch(() => undefined)
    const leave = () => reject(new RegistryRefusal('body-incomplete', { reason: 'the client closed the connection' }))
    if (this.#isStopping) reject(stopping())
    if (signal?.aborted) leave()
    signal?.addEventListener('abort', leave)
    this.#waiting.set(id, reject)
    return {
      untilNextLook: (deadline) => this.#untilNextLook(id, digest, deadline, cut),
      [Symbol.dispose]: () => {
        signal?.removeEventListener('abort', leave)
        this.#waiting.delete(id)
      },
    }
  }

  /** While the writer is here, no timer asks the metadata store: the writer wakes the request when it ends. */
  async #untilNextLook(id: UploadId, digest: Digest, deadline: number, cut: Promise<never>): Promise<void> {
    const { promise: looked, resolve } = Promise.withResolvers<void>()
    using _timer = this.#clock.every(lookAgainMs, () => {
      if (this.find(id)?.closing !== digest || this.#clock.steadyNow() >= deadline) resolve()
    })
    await Promise.race([cut, looked, this.#writers.get(id)?.ended ?? looked])
  }

  #looksDead({ waitsSince }: Writer): boolean {
    return waitsSince !== undefined && this.#clock.steadyNow() - waitsSince >= deadAfterMs
  }

  /** Stops the writer of an upload that is being cancelled, and waits until it is gone. */
  async stop(id: UploadId, reason: string): Promise<void> {
    const writer = this.#writers.get(id)
    writer?.stop(reason)
    await writer?.ended
    this.#hashes.delete(id)
  }

  /** From now on no request waits for another: the process is going down, and clients may repeat theirs elsewhere. */
  stopWaiting(): void {
    this.#isStopping = true
    for (const end of this.#waiting.values()) end(stopping())
  }

  /** Stops every writer: the process is going down. What they received so far stays. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#writers.keys()].map((id) => this.stop(id, 'the server is stopping')))
  }

  keepHash(upload: Upload, sizeBytes: number, hash: RunningHash): void {
    this.#hashes.delete(upload.id)
    this.#hashes.set(upload.id, { epoch: upload.epoch, sizeBytes, hash })
    const oldest = this.#hashes.keys().next().value
    if (this.#hashes.size > keptHashesMax && oldest !== undefined) this.#hashes.delete(oldest)
  }

  /** The hash of all bytes so far, if the writer just before this turn was ours and stopped where this one begins. */
  takeHash(upload: Upload): RunningHash | undefined {
    const kept = this.#hashes.get(upload.id)
    this.#hashes.delete(upload.id)
    const isUnbroken = kept?.epoch === upload.epoch - 1 && kept.sizeBytes === upload.object.sizeBytes
    return isUnbroken ? kept.hash : undefined
  }
}

function stopping(): Unavailable {
  return new Unavailable('the server (it is shutting down)')
}
