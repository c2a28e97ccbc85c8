import type { MarkName, Marks } from '../../../ports/marks.ts'
import type { Queryable } from '../database.ts'

interface MarkRow {
  readonly value: string
}

export class SqlMarks implements Marks {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async find(name: MarkName): Promise<string | undefined> {
    return (await this.#queries.lookUp<MarkRow>('SELECT value FROM marks WHERE name = $1', [name]))?.value
  }

  async findLocked(name: MarkName): Promise<string | undefined> {
    // If there is no such row, the statement still locks the table, and that is enough for `lockExclusively`.
    const row = await this.#queries.first<MarkRow>('SELECT m.value FROM marks m WHERE m.name = $1 {for key share m}', [
      name,
    ])
    return row?.value
  }

  async lockExclusively(): Promise<void> {
    // In the same order as other transactions, which lock a mark before an account.
    await this.#queries.run('{lock table marks, accounts}', [])
  }

  async set(name: MarkName, text: string): Promise<void> {
    await this.#queries.run(
      'INSERT INTO marks (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      [name, text],
    )
  }

  async remove(name: MarkName): Promise<void> {
    await this.#queries.run('DELETE FROM marks WHERE name = $1', [name])
  }
}
