import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
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
      return (await this.#read()) ?? (await this.#write(await generate()))
    } catch (error) {
      throw new Unavailable('the signing key', { cause: error })
    }
  }

  async #read(): Promise<SigningKey | undefined> {
    try {
      return JSON.parse(await readFile(this.#path, 'utf8'))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw error
    }
  }

  /** Written aside and renamed, so that a crash leaves the old key or the new one, never half of one. */
  async #write(key: SigningKey): Promise<SigningKey> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    const aside = `${this.#path}.new`
    const file = await open(aside, 'w', 0o600)
    try {
      await file.writeFile(JSON.stringify(key))
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(aside, this.#path)
    return key
  }
}
