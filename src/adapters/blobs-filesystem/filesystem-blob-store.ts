import { constants, existsSync, statSync } from 'node:fs'
import { access, mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../lib/sync-folder.ts'
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
import { FilesystemBlobWriter, TooShort } from './filesystem-blob-writer.ts'
import { fanOut, folderOf, isStorageKey, ownerFile, pathOf } from './paths.ts'

/** Objects as plain files; `paths.ts` draws the tree. The kernel sends them: a `BunFile` goes out by sendfile. */
export class FilesystemBlobStore implements BlobStore {
  readonly #root: string
  readonly #disk: DiskSpace | undefined
  /** The name that stood in the store when it was claimed. */
  #owner: string | undefined

  private constructor(root: string, disk: DiskSpace | undefined) {
    this.#root = root
    this.#disk = disk
  }

  /**
   * Makes the folders durable before the first upload, so that an upload has only its own entry to sync. Where `disk` is
   * given, writers stop at its reserve. `mayBeDamaged`: a file in the place of a folder is no error before an object of that
   * folder is needed.
   */
  static async open(root: string, disk?: DiskSpace, { mayBeDamaged = false } = {}): Promise<FilesystemBlobStore> {
    await trouble(async () => {
      await mkdir(root, { recursive: true, mode: 0o700 })
      let isNew = false
      for (const folder of fanOut) {
        const made = mkdir(join(root, folder), { recursive: true, mode: 0o700 })
        isNew = (await (mayBeDamaged ? made.catch(ignoreExisting) : made)) !== undefined || isNew
      }
      if (isNew) {
        await syncFolder(root)
        await syncFolder(join(root, '..'))
      }
    })
    return new FilesystemBlobStore(root, disk)
  }

  openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter> {
    return trouble(async () => {
      // An empty folder in the place of a disk that is not mounted would take the bytes, and hide them afterwards.
      if (!this.#hasOwner()) await this.#checkOwner()
      const writer = await this.#openWriter(key, from.sizeBytes)
      if (writer !== undefined) return writer
      await this.#checkOwner()
      if (from.sizeBytes > 0) throw new Spoiled('the file of an upload is missing, or shorter than was acknowledged')
      // Its folder is lost. Objects that were in it are noticed when they are read.
      await mkdir(folderOf(this.#root, key), { mode: 0o700 }).catch(ignoreExisting)
      await syncFolder(this.#root)
      return FilesystemBlobWriter.open(this.#root, key, 0, this.#disk)
    })
  }

  async #openWriter(key: StorageKey, position: number): Promise<BlobWriter | undefined> {
    try {
      return await FilesystemBlobWriter.open(this.#root, key, position, this.#disk)
    } catch (error) {
      if (isMissing(error) || error instanceof TooShort) return undefined
      throw error
    }
  }

  async open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined> {
    const path = pathOf(this.#root, key)
    if (sizeOf(path) !== sizeBytes) return trouble(() => this.#checkOwner())
    const file = Bun.file(path)
    return range === undefined ? file : file.slice(range.first, range.last + 1)
  }

  read(key: StorageKey, sizeBytes: number): Promise<AsyncIterable<Uint8Array> | undefined> {
    return trouble(async () => {
      const path = pathOf(this.#root, key)
      return sizeOf(path) === sizeBytes ? bytesIn(path) : this.#checkOwner()
    })
  }

  has(key: StorageKey, sizeBytes: number): Promise<boolean> {
    return trouble(async () => {
      if (sizeOf(pathOf(this.#root, key)) === sizeBytes) return true
      await this.#checkOwner()
      return false
    })
  }

  #hasOwner(): boolean {
    return this.#owner === undefined || existsSync(join(this.#root, ownerFile))
  }

  /** What is missing is lost only if this is the store that was claimed, and not an empty folder in its place. */
  async #checkOwner(): Promise<undefined> {
    if (this.#owner === undefined) return
    const found = await this.#readOwner()
    if (found === this.#owner) return
    const says = found === undefined ? 'there is no file' : `${found} stands in the file`
    throw new Error(`${says} ${join(this.#root, ownerFile)}, which must name ${this.#owner}: is the disk mounted?`)
  }

  async remove(key: StorageKey): Promise<void> {
    await trouble(async () => {
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
      const names = await trouble(() => readdir(join(this.#root, folder)).catch(nothingToList))
      const strays: OrphanedObject[] = []
      for (const key of names.filter(isStorageKey)) {
        // Gone meanwhile is as good as too young.
        const found = await stat(join(this.#root, folder, key)).catch(() => undefined)
        const isOld = found !== undefined && Date.now() - found.mtimeMs >= ageMs
        if (isOld) strays.push({ storageKey: key, openedFor: key, notes: undefined })
      }
      yield strays
    }
  }

  claim(
    owner: string,
    { mayBeNew, formerOwner }: { readonly mayBeNew: boolean; readonly formerOwner?: string },
  ): Promise<string | undefined> {
    return trouble(async () => {
      const known = await this.#readOwner()
      const isOurs = known === undefined ? mayBeNew : known === formerOwner
      if (isOurs) await writeSynced(join(this.#root, ownerFile), owner)
      this.#owner = isOurs ? owner : known
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
    // Files are closed by those who opened them.
  }

  async probe(): Promise<void> {
    await trouble(async () => {
      if (!this.#hasOwner()) await this.#checkOwner()
      await access(this.#root, constants.R_OK | constants.W_OK | constants.X_OK)
      const folder = await open(this.#root, constants.O_RDONLY)
      await folder.close()
    })
  }
}

/** Written aside and renamed: there is no half of a name. */
async function writeSynced(path: string, text: string): Promise<void> {
  const aside = `${path}.${crypto.randomUUID()}`
  const file = await open(aside, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(aside, path)
  await syncFolder(dirname(path))
}

/**
 * Undefined where there is no such file, or a folder in its place. Asked synchronously: one short system call is cheaper than a trip to a thread, and
 * this is the pull path.
 */
function sizeOf(path: string): number | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found?.isDirectory() ? undefined : found?.size
  } catch (error) {
    throw new Unavailable('the blob store', { cause: error })
  }
}

/** Another writer may have made the folder a moment before. */
function ignoreExisting(error: unknown): undefined {
  if (!isCode(error, 'EEXIST')) throw error
}

function isMissing(error: unknown): boolean {
  return isCode(error, 'ENOENT')
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/** In a folder that is lost, or in the place of which a file stands, is nothing to list. */
function nothingToList(error: unknown): string[] {
  if (isMissing(error) || isCode(error, 'ENOTDIR')) return []
  throw error
}

async function* bytesIn(path: string): AsyncGenerator<Uint8Array> {
  const reader = Bun.file(path).stream().getReader()
  try {
    for (;;) {
      const { done, value } = await trouble(() => reader.read())
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** The file system's errors become ours, with theirs as the cause. */
async function trouble<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof Spoiled || error instanceof Unavailable) throw error
    throw new Unavailable('the blob store', { cause: error })
  }
}
