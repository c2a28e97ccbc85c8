import { link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../lib/sync-folder.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { SigningKey, SigningKeys } from '../../ports/signing-keys.ts'

/** The signing key as one JSON file that only its owner can read. */
export class FilesystemSigningKeys implements SigningKeys {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  async current(generate: () => Promise<SigningKey>): Promise<SigningKey> {
    try {
      const known = await this.#read()
      if (known !== undefined) return known
      await this.#publish(await generate())
      // Another process may have been first: its key is the one that counts.
      return (await this.#read()) ?? fail(`${this.#path} vanished`)
    } catch (error) {
      throw new Unavailable('the signing key', { cause: error })
    }
  }

  async #read(): Promise<SigningKey | undefined> {
    let text: string
    try {
      text = await readFile(this.#path, 'utf8')
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined
      throw error
    }
    const key: unknown = JSON.parse(text)
    return isSigningKey(key) ? key : fail(`${this.#path} holds no signing key`)
  }

  /** Written aside, synced, and linked to its name: there is no half of a key, and the first one to come stays. */
  async #publish(key: SigningKey): Promise<void> {
    const folder = dirname(this.#path)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const aside = join(folder, `${crypto.randomUUID()}.new`)
    const file = await open(aside, 'wx', 0o600)
    try {
      await file.writeFile(JSON.stringify(key))
      await file.sync()
      await link(aside, this.#path)
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    } finally {
      await file.close()
      await unlink(aside)
    }
    await syncFolder(folder)
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

function isSigningKey(value: unknown): value is SigningKey {
  return typeof value === 'object' && value !== null && 'kid' in value && 'privateJwk' in value
}

function fail(reason: string): never {
  throw new Error(reason)
}
