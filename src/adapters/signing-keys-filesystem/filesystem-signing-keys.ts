import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../lib/sync-folder.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { SigningKey, SigningKeys } from '../../ports/signing-keys.ts'

const suffix = '.jwk.json'

/**
 * The signing keys as files of one folder, `<kid>.jwk.json`, that only their owner can read. What has another ending is
 * nobody's key; what has this one and is no key, or not the one that its name says, is trouble and never passed over: a
 * key that goes missing ends tokens that are good.
 */
export class FilesystemSigningKeys implements SigningKeys {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  async list(): Promise<SigningKey[]> {
    return attempt(async () => {
      const names = await readdir(this.#folder).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return []
        throw error
      })
      const keys = await Promise.all(names.filter((name) => name.endsWith(suffix)).map((name) => this.#read(name)))
      return keys
        .filter((key) => key !== undefined)
        .sort((one, other) => one.createdAt - other.createdAt || (one.kid < other.kid ? -1 : 1))
    })
  }

  /** Written aside, synced, and renamed: there is no half of a key. */
  async add(key: SigningKey): Promise<void> {
    await attempt(async () => {
      const path = this.#pathOf(key.kid)
      const made = await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      if (made !== undefined) await syncFolder(dirname(made))
      const aside = join(this.#folder, `${crypto.randomUUID()}.new`)
      try {
        await writeSynced(aside, JSON.stringify(key))
        await rename(aside, path)
      } catch (error) {
        // No half of a private key is left lying about.
        await rm(aside, { force: true })
        throw error
      }
      await syncFolder(this.#folder)
    })
  }

  async remove(kid: string): Promise<void> {
    await attempt(async () => {
      const path = this.#pathOf(kid)
      try {
        await rm(path)
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return
        throw error
      }
      await syncFolder(this.#folder)
    })
  }

  async #read(name: string): Promise<SigningKey | undefined> {
    let text: string
    try {
      text = await readFile(join(this.#folder, name), 'utf8')
    } catch (error) {
      // Another process removed it between our two looks.
      if (hasCode(error, 'ENOENT')) return undefined
      throw error
    }
    const key = parseOrNothing(text)
    if (!isSigningKey(key)) throw new Error(`${name} holds no signing key`)
    if (key.kid + suffix !== name) throw new Error(`${name} holds another key than its name says`)
    return key
  }

  #pathOf(kid: string): string {
    if (!/^[A-Za-z0-9-]{1,64}$/.test(kid)) throw new Error('a key is named by letters, digits and dashes')
    return join(this.#folder, kid + suffix)
  }
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The parser's own error would quote the text, and the log must not have it. */
function parseOrNothing(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function attempt<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    throw new Unavailable('the signing keys', { cause: error })
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

function isSigningKey(value: unknown): value is SigningKey {
  if (typeof value !== 'object' || value === null) return false
  const { kid, createdAt, privateJwk } = value as Partial<SigningKey>
  return (
    typeof kid === 'string' &&
    typeof createdAt === 'number' &&
    Number.isFinite(createdAt) &&
    typeof privateJwk === 'object' &&
    privateJwk !== null
  )
}
