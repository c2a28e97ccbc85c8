import { constants, existsSync, statSync } from 'node:fs'
import { access, mkdir, open, readdir, readFile, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { hasErrorCode, syncFolder, writeDurably } from '../../lib/durable-files.ts'
import { Slots } from '../../lib/slots.ts'
import { Spoiled, Unavailable } from '../../oci/errors.ts'
import type {
  BlobStore,
  BlobWriter,
  ByteRange,
  OrphanedObject,
  OutgoingBytes,
  StorageKey,
  UnfinishedObject,
} from '../../ports/blob-store.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'
import { FilesystemBlobWriter, TooShort, type WriterNeeds } from './filesystem-blob-writer.ts'
import { fanOut, folderOf, isStorageKey, ownerFile, pathOf } from './paths.ts'

/** Bun has one thread for each core for writes and syncs. Half of them stay free for writes. */
const earlySyncsMax = Math.max(1, Math.floor(navigator.hardwareConcurrency / 2))

/**
 * Objects as files; `paths.ts` shows the folders. Downloads are a `BunFile`, which the kernel sends by sendfile.
 *
 * Durability: a writer syncs the file and its folder before an upload is acknowledged.
 *
 * Missing files: a disk that is not mounted looks like an empty folder. So a missing or shorter file counts as lost only if the
 * file `owner` still names this registry; otherwise the store is `Unavailable`, and it accepts no uploads.
 */
export class FilesystemBlobStore implements BlobStore {
  readonly #root: string
  readonly #writers: WriterNeeds
  /** The content of the file `owner` when the store was claimed. */
  #owner: string | undefined

  private constructor(root: string, disk: DiskSpace | undefined) {
    this.#root = root
    this.#writers = { root, disk, earlySyncs: new Slots(earlySyncsMax, 0) }
  }

  /**
   * Creates and syncs the folders, so that an upload has only its own entry to sync. If `disk` is given, writers stop at its
   * reserve. `mayBeDamaged`: a file in the place of a folder is an error only when an object of that folder is needed.
   */
  static async open(root: string, disk?: DiskSpace, { mayBeDamaged = false } = {}): Promise<FilesystemBlobStore> {
    await attempt(async () => {
      await mkdir(root, { recursive: true, mode: 0o700 })
      let isNew = false
      for (const folder of fanOut) {
        const creating = mkdir(join(root, folder), { recursive: true, mode: 0o700 })
        isNew = (await (mayBeDamaged ? creating.catch(ignoreExisting) : creating)) !== undefined || isNew
      }
      if (isNew) {
        await syncFolder(root)
        await syncFolder(join(root, '..'))
      }
    })
    return new FilesystemBlobStore(root, disk)
  }

  openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter> {
    return attempt(async () => {
      // If the disk is not mounted, the bytes would go into the empty folder in its place and be hidden later.
      if (!this.#hasOwner()) await this.#checkOwner()
      const writer = await this.#openWriter(key, from.sizeBytes)
      if (writer !== undefined) return writer
      await this.#checkOwner()
      if (from.sizeBytes > 0) throw new Spoiled('the file of an upload is missing, or shorter than was acknowledged')
      // The folder is lost. Its lost objects will be found when they are read.
      await mkdir(folderOf(this.#root, key), { mode: 0o700 }).catch(ignoreExisting)
      await syncFolder(this.#root)
      return FilesystemBlobWriter.open(this.#writers, key, 0)
    })
  }

  async #openWriter(key: StorageKey, position: number): Promise<BlobWriter | undefined> {
    try {
      return await FilesystemBlobWriter.open(this.#writers, key, position)
    } catch (error) {
      if (isMissing(error) || error instanceof TooShort) return undefined
      throw error
    }
  }

  async open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined> {
    const path = pathOf(this.#root, key)
    if (sizeOf(path) !== sizeBytes) return attempt(() => this.#checkOwner())
    const file = Bun.file(path)
    return range === undefined ? file : file.slice(range.first, range.last + 1)
  }

  read(key: StorageKey, sizeBytes: number): Promise<AsyncIterable<Uint8Array> | undefined> {
    return attempt(async () => {
      const path = pathOf(this.#root, key)
      return sizeOf(path) === sizeBytes ? bytesIn(path) : this.#checkOwner()
    })
  }

  has(key: StorageKey, sizeBytes: number): Promise<boolean> {
    return attempt(async () => {
      if (sizeOf(pathOf(this.#root, key)) === sizeBytes) return true
      await this.#checkOwner()
      return false
    })
  }

  #hasOwner(): boolean {
    return this.#owner === undefined || existsSync(join(this.#root, ownerFile))
  }

  /** Fails if this is not the store that was claimed, but an empty folder in its place, for example. */
  async #checkOwner(): Promise<undefined> {
    if (this.#owner === undefined) return
    const owner = await this.#readOwner()
    if (owner === this.#owner) return
    const state = owner === undefined ? 'is missing' : `names ${owner}`
    throw new Error(`${join(this.#root, ownerFile)} ${state}, but must name ${this.#owner}: is the disk mounted?`)
  }

  async remove(key: StorageKey): Promise<void> {
    await attempt(async () => {
      try {
        await unlink(pathOf(this.#root, key))
      } catch (error) {
        if (!isMissing(error)) throw error
      }
    })
  }

  presignDownload(): undefined {
    return undefined
  }

  async *listOlderThan(ageMs: number): AsyncIterable<readonly OrphanedObject[]> {
    for (const folder of fanOut) {
      const names = await attempt(() => readdir(join(this.#root, folder)).catch(listNothing))
      const objects: OrphanedObject[] = []
      for (const key of names.filter(isStorageKey)) {
        // A file that was removed meanwhile is skipped.
        const found = await stat(join(this.#root, folder, key)).catch(() => undefined)
        const isOld = found !== undefined && Date.now() - found.mtimeMs >= ageMs
        if (isOld) objects.push({ storageKey: key, openedFor: key, notes: undefined })
      }
      yield objects
    }
  }

  claim(
    owner: string,
    { mayBeNew, formerOwner }: { readonly mayBeNew: boolean; readonly formerOwner?: string },
  ): Promise<string | undefined> {
    return attempt(async () => {
      const current = await this.#readOwner()
      const mayClaim = current === undefined ? mayBeNew : current === formerOwner
      if (mayClaim) await writeDurably(join(this.#root, ownerFile), owner)
      this.#owner = mayClaim ? owner : current
      return this.#owner
    })
  }

  async #readOwner(): Promise<string | undefined> {
    try {
      return await readFile(join(this.#root, ownerFile), 'utf8')
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  async close(): Promise<void> {
    // Writers and readers close their own files.
  }

  async probe(): Promise<void> {
    await attempt(async () => {
      if (!this.#hasOwner()) await this.#checkOwner()
      await access(this.#root, constants.R_OK | constants.W_OK | constants.X_OK)
      const folder = await open(this.#root, constants.O_RDONLY)
      await folder.close()
    })
  }
}

/**
 * Undefined if there is no such file, or a folder in its place. Synchronous, because every pull needs it, and one short system
 * call is cheaper than the way to another thread and back.
 */
function sizeOf(path: string): number | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found?.isDirectory() ? undefined : found?.size
  } catch (error) {
    throw new Unavailable('blob-store', { cause: error })
  }
}

/** Another writer may have created the folder a moment before. */
function ignoreExisting(error: unknown): undefined {
  if (!hasErrorCode(error, 'EEXIST')) throw error
}

function isMissing(error: unknown): boolean {
  return hasErrorCode(error, 'ENOENT')
}

/** The folder is lost, or there is a file in its place. */
function listNothing(error: unknown): string[] {
  if (isMissing(error) || hasErrorCode(error, 'ENOTDIR')) return []
  throw error
}

async function* bytesIn(path: string): AsyncGenerator<Uint8Array> {
  const reader = Bun.file(path).stream().getReader()
  try {
    for (;;) {
      const { done, value } = await attempt(() => reader.read())
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** Wraps errors of the file system in `Unavailable`. */
async function attempt<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof Spoiled || error instanceof Unavailable) throw error
    throw new Unavailable('blob-store', { cause: error })
  }
}
