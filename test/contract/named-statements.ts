// Every statement that a metadata store asks, under the name of the method that asks it: `blobs.link: UPDATE manifest_entries`.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import type { Tables } from '../../src/ports/metadata-store.ts'
import { hookDatabase } from '../support/stores/hooked-database.ts'

export class NamedStatements {
  /** Statement, as it stands in the source -> the methods that ask it, each with the statement's first words. */
  readonly #methods = new Map<string, Set<string>>()
  readonly #method = new AsyncLocalStorage<string>()
  readonly #targets = new WeakMap<object, object>()

  /** A store whose statements are noted here. */
  async open(database: Database): Promise<SqlMetadataStore> {
    const store = await SqlMetadataStore.open(
      hookDatabase(database, ({ sql }, ask) => {
        const method = this.#method.getStore()
        if (method !== undefined) this.#note(sql, method)
        return ask()
      }),
    )
    return this.#naming(store, '') as SqlMetadataStore
  }

  /**
   * Name -> statement. Of several methods that ask one statement, the name is of one that is in `known`. Where a method asks two
   * statements that begin alike, the second has a number.
   */
  list(known: ReadonlySet<string>): ReadonlyMap<string, string> {
    const named = new Map<string, string>()
    for (const [sql, methods] of this.#methods) {
      const names = [...methods].toSorted().map((method) => `${method}: ${firstWords(sql)}`)
      const name = names.find((one) => known.has(one)) ?? names[0] ?? ''
      let number = 1
      while (named.has(numbered(name, number))) number += 1
      named.set(numbered(name, number), sql)
    }
    return named
  }

  #note(sql: string, method: string): void {
    const methods = this.#methods.get(sql) ?? new Set()
    methods.add(method)
    this.#methods.set(sql, methods)
  }

  #naming(target: object, noun: string): object {
    const naming = new Proxy(target, {
      get: (_, name) => {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member === 'object' && member !== null) return this.#naming(member, `${String(name)}.`)
        if (typeof member !== 'function') return member
        if (name === 'transaction') return (work: Work) => Reflect.apply(member, target, [this.#namingTables(work)])
        return (...values: unknown[]) => this.#call(`${noun}${String(name)}`, target, member, values)
      },
    })
    this.#targets.set(naming, target)
    return naming
  }

  #namingTables(work: Work): Work {
    return (tables) => work(this.#naming(tables, '') as Tables)
  }

  #call(name: string, target: object, method: CallableFunction, values: readonly unknown[]): unknown {
    // One store may be given to another, which looks behind its interface.
    const given = values.map(
      (value) => (typeof value === 'object' && value !== null && this.#targets.get(value)) || value,
    )
    const answer: unknown = this.#method.run(name, () => Reflect.apply(method, target, given))
    const isParts = name === 'movableBlobs' || name === 'copiedObjects' || name === 'signingKeys'
    return isParts ? this.#naming(answer as object, `${name}.`) : answer
  }
}

type Work = (tables: Tables) => Promise<unknown>

function numbered(name: string, number: number): string {
  return number === 1 ? name : `${name} (${number})`
}

/** `INSERT blob_queue`; a table that stands in a nested statement counts only where nothing else names one. */
function firstWords(sql: string): string {
  const verb = /\w+/.exec(sql)?.[0] ?? ''
  if (verb === 'UPDATE') return `UPDATE ${/UPDATE\s+(\w+)/.exec(sql)?.[1]}`
  const table = /\b(?:INTO|FROM)\s+(?!AS\b)(\w+)/i
  return `${verb} ${(table.exec(withoutNested(sql)) ?? table.exec(sql))?.[1] ?? ''}`.trim()
}

function withoutNested(sql: string): string {
  const without = sql.replaceAll(/\([^()]*\)/g, '')
  return without === sql ? sql : withoutNested(without)
}
