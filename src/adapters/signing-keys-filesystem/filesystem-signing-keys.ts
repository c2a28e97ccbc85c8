import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasErrorCode, syncFolder, writeDurably } from '../../lib/durable-files.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { SigningKey, SigningKeys } from '../../ports/signing-keys.ts'

const suffix = '.jwk.json'

/**
 * The signing keys as files `<kid>.jwk.json` of one folder, which only their owner can read. Files with another ending are
 * ignored. A file with this ending that holds no key, or another key than its name says, is an error and is never skipped:
 * without its key, valid tokens would be rejected.
 */
export class FilesystemSigningKeys implements SigningKeys {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  async list(): Promise<SigningKey[]> {
    return attempt(async () => {
      const names = await readdir(this.#folder).catch((error: unknown) => {
        if (hasErrorCode(error, 'ENOENT')) return []
        throw error
      })
      const keys = await Promise.all(names.filter((name) => name.endsWith(suffix)).map((name) => this.#read(name)))
      return keys
        .filter((key) => key !== undefined)
        .sort((a, b) => a.createdAt - b.createdAt || (a.kid < b.kid ? -1 : 1))
    })
  }

  async add(key: SigningKey): Promise<void> {
    await attempt(async () => {
      const path = this.#pathOf(key.kid)
      const created = await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      if (created !== undefined) await syncFolder(dirname(created))
      await writeDurably(path, JSON.stringify(key))
    })
  }

  async remove(kid: string): Promise<void> {
    await attempt(async () => {
      const path = this.#pathOf(kid)
      try {
        await rm(path)
      } catch (error) {
        if (hasErrorCode(error, 'ENOENT')) return
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
      // Another process removed it after the folder was listed.
      if (hasErrorCode(error, 'ENOENT')) return undefined
      throw error
    }
    const key = parseJson(text)
    if (!isSigningKey(key)) throw new Error(`${name} holds no signing key`)
    if (key.kid + suffix !== name) throw new Error(`${name} holds another key than its name says`)
    return key
  }

  #pathOf(kid: string): string {
    if (!/^[A-Za-z0-9-]{1,64}$/.test(kid)) throw new Error('the id of a key must consist of letters, digits and dashes')
    return join(this.#folder, kid + suffix)
  }
}

/** Without the error of the parser, because that quotes the text, and a private key must not reach the log. */
function parseJson(text: string): unknown {
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
    throw new Unavailable('signing-keys', { cause: error })
  }
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
