// One line for the plan of a statement: the indexes that it uses and the rows that it reads.

/** What `digestPlan` needs of a plan. */
export interface DigestedStatement {
  readonly name: string
  readonly plan: string
  readonly pages: number
}

const scan = /(?:(Index Only Scan|Index Scan|Bitmap Index Scan)(?: Backward)? (?:using|on) (\S+)|Seq Scan on (\S+))/
const actual = /actual rows=(\d+) loops=(\d+)/
const filtered = /Rows Removed by Filter: (\d+)/

/** Scans of the plan, in its order: indexes by their names, and tables that are read completely. */
export function indexesOf(plan: string): readonly string[] {
  const found = plan.split('\n').flatMap((line) => {
    const [, , index, table] = scan.exec(line) ?? []
    return index ?? (table === undefined ? [] : [`all of ${table}`])
  })
  return [...new Set(found)]
}

/** Rows that all scans together have read, including rows that a filter removed. */
export function rowsReadBy(plan: string): number {
  let rows = 0
  let loops = 0
  for (const line of plan.split('\n')) {
    const [, returned = '0', times = '0'] = actual.exec(line) ?? []
    if (line.includes('actual rows=')) loops = scan.test(line) ? Number(times) : 0
    if (scan.test(line)) rows += Number(returned) * Number(times)
    rows += Number(filtered.exec(line)?.[1] ?? 0) * loops
  }
  return rows
}

export function formatDigest(statements: readonly DigestedStatement[]): string {
  const rows = statements.map(({ name, plan, pages }) => {
    const indexes = indexesOf(plan).map((index) => `\`${index}\``)
    return `| ${name} | ${indexes.join(', ') || 'none'} | ${rowsReadBy(plan)} | ${pages} |`
  })
  return ['| Statement | Indexes | Rows read | Pages |', '|---|---|---:|---:|', ...rows].join('\n')
}
