import type { RunningHash } from '../lib/hashing.ts'
import type { Digest } from '../oci/digest.ts'
import type { Clock } from '../ports/clock.ts'
import type { Upload, UploadId } from '../ports/uploads.ts'

/** A request that is writing to an upload right now, in this process. */
interface Writer {
  /** Since when it waits for its sender; undefined while it works by itself. */
  waitsSince: number | undefined
  /** The digest with which it closes the upload, if it does. */
  readonly closing: Digest | undefined
  /** With the reason, for the log. */
  readonly stop: (reason: string) => void
  readonly ended: Promise<void>
}

/** For a writer to tell what it does. */
export interface WriterEntry {
  awaitSender(): void
  /** It has what it needs of its sender, for now, and works: it is alive, however long that takes. */
  awaitStore(): void
  end(): void
}

interface KeptHash {
  readonly epoch: number
  readonly sizeBytes: number
  readonly hash: RunningHash
}

/** A writer that has waited for its sender for this long may be a dead connection whose client has come back. */
const deadAfterMs = 1_000

/** Kept hashes are small, but a session that nobody continues must not keep its own for ever. */
const keptHashesMax = 2_000

/**
 * What this process remembers of uploads between requests. Nothing here is needed for correctness: the metadata store
 * decides whose turn it is, and a hash that is not here is computed again from the stored bytes.
 */
export class RunningUploads {
  readonly #clock: Pick<Clock, 'steadyNow'>
  readonly #writers = new Map<UploadId, Writer>()
  readonly #hashes = new Map<UploadId, KeptHash>()

  constructor(clock: Pick<Clock, 'steadyNow'>) {
    this.#clock = clock
  }

  /**
   * Announces a writer. A writer before it that looks dead is stopped and waited for; one that is alive keeps its turn, and
   * the answer is undefined.
   */
  async enter(id: UploadId, stop: Writer['stop'], closing?: Digest): Promise<WriterEntry | undefined> {
    const before = this.#writers.get(id)
    if (before !== undefined) {
      if (!this.#looksDead(before)) return undefined
      before.stop('another request goes on with the upload')
      await before.ended
      if (this.#writers.has(id)) return undefined
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const writer: Writer = { waitsSince: undefined, closing, stop, ended }
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
