/**
 * The small SQL surface that both engines offer. The queries above it are written once, in the SQL that SQLite and
 * PostgreSQL share, with a few macros where they differ:
 *
 *   {now}             milliseconds since 1970 by the engine's clock
 *   {any $n}          IN the JSON array of texts that is parameter n
 *   {each $n}         a FROM item named `each`, one row a member of the JSON array, in column `each.value`
 *   {texts $n}        the same for an array of texts: `each.value` is a text, where {each} may give it as JSON
 *   {keep a, b}       row locks that stop deletion until the transaction ends (SQLite: one writer, nothing to do)
 *   {lock a, b}       row locks for changing; {lock a, b skip} passes over rows that another transaction holds
 *   {serialize a}     row locks that one transaction at a time can hold; {keep a} does not wait for them, and may be held
 *                     before (SQLite: one writer, nothing to do)
 *   {hold up a, b}    a statement of its own: waits for all who hold rows of these tables, and keeps others from it until
 *                     the transaction ends; who only reads passes (SQLite: one writer, nothing to do)
 *   {id} {number} {text} {bytes} {table}   column and table kinds, in migrations
 */
export type Value = string | number | Uint8Array | null

/** A row as the engine gives it: columns by name. */
export type Row = Readonly<Record<string, unknown>>

export interface Queryable {
  /** Reads. Outside a transaction these see only what is committed. */
  all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]>
  first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined>

  /**
   * As `first`, for a look-up by key whose answer follows from the rows alone (no clock in it). An engine may answer from
   * memory as long as it knows that no row has changed since.
   */
  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined>

  /** Writes: the number of rows changed, or with RETURNING the rows. */
  run(sql: string, values: readonly Value[]): Promise<number>
  returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]>
}

export interface Database extends Queryable {
  readonly engine: 'sqlite' | 'postgres'
  transaction<T>(work: (queries: Queryable) => Promise<T>): Promise<T>
  /** Reads that all see one moment, however long they take. Writers do not wait for them. */
  snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T>
  hasTable(name: string): Promise<boolean>
  /** Runs statements that take no values: migrations only. */
  script(sql: string): Promise<void>
  /** Runs `work` while no other process runs its own: several may be the first to bring a database up to date. */
  alone<T>(work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** How one engine spells the macros. */
export interface Dialect {
  readonly words: Readonly<Record<string, string>>
  any(parameter: string): string
  each(parameter: string): string
  texts(parameter: string): string
  keep(tables: string): string
  lock(tables: string, skip: boolean): string
  serialize(tables: string): string
  holdUp(tables: string): string
}

const macro = /\{(any|each|texts|keep|lock|serialize|hold up)\s+([^}]*?)(\s+skip)?\}|\{([a-z]+)\}/g

/** The text for one engine. Called once for each text; the engines keep what they prepared. */
export function translate(sql: string, dialect: Dialect): string {
  return sql.replace(macro, (whole, verb?: string, argument?: string, skip?: string, word?: string) => {
    if (word !== undefined) return dialect.words[word] ?? whole
    if (verb === 'any') return dialect.any(argument ?? '')
    if (verb === 'each') return dialect.each(argument ?? '')
    if (verb === 'texts') return dialect.texts(argument ?? '')
    if (verb === 'keep') return dialect.keep(argument ?? '')
    if (verb === 'serialize') return dialect.serialize(argument ?? '')
    if (verb === 'hold up') return dialect.holdUp(argument ?? '')
    return dialect.lock(argument ?? '', skip !== undefined)
  })
}
