// Signing keys in memory, and a clock that a test moves, for tests of what is signed.
import type { SigningKey, SigningKeys } from '../../../src/ports/signing-keys.ts'

export class MemorySigningKeys implements SigningKeys {
  readonly kept = new Map<string, SigningKey>()
  /** How often the keys were asked for. */
  looks = 0

  async list(): Promise<SigningKey[]> {
    this.looks += 1
    return [...this.kept.values()].sort(
      (one, other) => one.createdAt - other.createdAt || (one.kid < other.kid ? -1 : 1),
    )
  }

  async add(key: SigningKey): Promise<void> {
    this.kept.set(key.kid, key)
  }

  async remove(kid: string): Promise<void> {
    this.kept.delete(kid)
  }
}

export class MovingClock {
  at: number
  #ids = 0

  constructor(at = 1_800_000_000_000) {
    this.at = at
  }

  readonly now = (): number => this.at

  readonly freshId = (): string => {
    this.#ids += 1
    return `id-${this.#ids}-${crypto.randomUUID()}`
  }
}
