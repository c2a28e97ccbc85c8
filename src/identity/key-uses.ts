import type { ApiKeys } from '../ports/api-keys.ts'
import type { RowId } from '../ports/row-id.ts'

const gatheredMax = 10_000

/** Gathers which keys were used, so that it costs one write for all of them now and then, and no request waits for it. */
export class KeyUses {
  readonly #apiKeys: Pick<ApiKeys, 'noteUses'>
  readonly #gathered = new Set<RowId>()

  constructor(apiKeys: Pick<ApiKeys, 'noteUses'>) {
    this.#apiKeys = apiKeys
  }

  note(id: RowId): void {
    if (this.#gathered.size < gatheredMax) this.#gathered.add(id)
  }

  /** What could not be written is lost: it says "lately", not more. */
  async flush(): Promise<void> {
    if (this.#gathered.size === 0) return
    const ids = [...this.#gathered]
    this.#gathered.clear()
    await this.#apiKeys.noteUses(ids)
  }
}
