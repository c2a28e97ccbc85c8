import { mkdir, readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { NoSlot, Slots } from '../../lib/slots.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'
import { type PartPlan, sizeOfPart } from './part-plan.ts'
import { type Checksum, type Piece, PieceInFile, PieceInMemory } from './piece.ts'

export interface RoomSettings {
  readonly plan: PartPlan
  readonly checksum: Checksum
  /** Most pieces in memory at once, whoever's they are. */
  readonly piecesMax: number
  /** Most writers that wait for the room of a piece, and for how long. */
  readonly queueMax: number
  readonly waitMaxMs: number
  /** For pieces that memory is too small for, or has no room for. */
  readonly folder: string
  /** The disk that the folder is on, if it has a reserve. */
  readonly disk?: DiskSpace | undefined
}

/** So much is no piece yet: what is smaller than this never waits. */
const freeBytes = 64 * 1024

const abandonedAfterMs = 7 * 24 * 3_600_000

/**
 * The memory that all writers share. A writer takes a place for the piece that it gathers and gives it back once the store
 * has it; while there is none, it does not read from its client. A place that is held by a slow client may not come back for
 * hours: who has waited long enough goes on in a file.
 */
export class PieceRoom {
  readonly plan: PartPlan
  readonly #settings: RoomSettings
  readonly #slots: Slots
  readonly #places = new Map<Piece, () => void>()
  #hasFolder = false

  constructor(settings: RoomSettings) {
    this.plan = settings.plan
    this.#settings = settings
    this.#slots = new Slots(settings.piecesMax, settings.queueMax, settings.waitMaxMs)
  }

  async open(startsAt: number, number: number): Promise<Piece> {
    const { checksum } = this.#settings
    const isForMemory = sizeOfPart(this.plan, number) <= this.plan.memoryMax
    return isForMemory ? new PieceInMemory(startsAt, checksum) : this.#openFile(startsAt)
  }

  async #openFile(startsAt: number): Promise<Piece> {
    const { folder, checksum, disk } = this.#settings
    await this.#prepareFolder()
    return PieceInFile.open(startsAt, folder, checksum, disk)
  }

  /** Before so many bytes come. Gives the piece to go on with: another one, with the same bytes, where memory has no room. */
  async prepare(piece: Piece, bytes: number): Promise<Piece> {
    const isShared = piece instanceof PieceInMemory && !this.#places.has(piece)
    return isShared && !this.isSmall(piece.sizeBytes + bytes) ? this.#settle(piece) : piece
  }

  /** So much is no piece yet: it takes nothing of what is shared, and costs little to put by itself. */
  isSmall(sizeBytes: number): boolean {
    return sizeBytes <= freeBytes
  }

  /** Gives the piece to go on with, as `prepare` does. */
  async append(piece: Piece, chunk: Uint8Array): Promise<Piece> {
    const held = await this.prepare(piece, chunk.length)
    try {
      await held.append(chunk)
      return held
    } catch (error) {
      // The caller does not know of a new one yet.
      if (held !== piece) await held.discard()
      throw error
    }
  }

  async #settle(piece: Piece): Promise<Piece> {
    try {
      this.#places.set(piece, await this.#slots.take())
      return piece
    } catch (error) {
      if (!(error instanceof NoSlot)) throw error
      return this.#moveToFile(piece)
    }
  }

  async #moveToFile(piece: Piece): Promise<Piece> {
    const inFile = await this.#openFile(piece.startsAt)
    try {
      for await (const bytes of new Blob([piece.body().bytes]).stream()) await inFile.append(bytes)
    } catch (error) {
      await inFile.discard()
      throw error
    }
    await piece.discard()
    return inFile
  }

  /** Never fails: the bytes are where they have to be, or nobody's; a file that stays is taken away when it is old. */
  async close(piece: Piece): Promise<void> {
    await piece.discard().catch(() => undefined)
    this.#places.get(piece)?.()
    this.#places.delete(piece)
  }

  /** Made when first needed, which for most servers is never. Files of processes that died are taken away. */
  async #prepareFolder(): Promise<void> {
    if (this.#hasFolder) return
    const { folder } = this.#settings
    await mkdir(folder, { recursive: true, mode: 0o700 })
    this.#hasFolder = true
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      const found = await stat(path).catch(() => undefined)
      const isOld = found !== undefined && Date.now() - found.mtimeMs > abandonedAfterMs
      if (isOld) await unlink(path).catch(() => undefined)
    }
  }
}
