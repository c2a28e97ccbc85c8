// A database that notes what it is asked, for comparing what two requests cost without looking at a clock.
import type { Database, Queryable } from '../../../src/adapters/metadata-sql/database.ts'
import { HookedDatabase } from './hooked-database.ts'

/** A statement with its values: `first SELECT ... [1,"app"]`. */
export type Statement = string

export class RecordedDatabase extends HookedDatabase {
  readonly statements: Statement[]

  constructor(inner: Database) {
    const statements: Statement[] = []
    super(inner, ({ kind, sql, values }, ask) => {
      statements.push(`${kind} ${sql.replaceAll(/\s+/g, ' ').trim()} ${JSON.stringify(values)}`)
      return ask()
    })
    this.statements = statements
  }

  override transaction<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    this.statements.push('BEGIN')
    return super.transaction(work).finally(() => this.statements.push('END'))
  }
}
