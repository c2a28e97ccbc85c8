// Reads the plan of every statement from the server's log, for the prepared statements that the adapter runs.
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, openCourse, type PlanMode } from './measure.ts'
import type { Probe } from './probe.ts'
import { probes } from './probes.ts'
import type { ScaleServer } from './server.ts'

export interface KnownPlan {
  readonly name: string
  readonly file: string
  readonly probe: string
  /** The text in the adapter, and the text that the server received. */
  readonly source: string
  readonly sql: string
  readonly plan: string
  /** The shape of the plan, which does not depend on the number of rows. */
  readonly shape: string
  /**
   * The median of the pages of 8 KiB that the statement read, without foreign keys. The load of the machine has no
   * effect on it.
   */
  readonly pages: number
}

// Rows and buffers, but no times, because times depend on the machine.
const explaining = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
}

/** PostgreSQL settles the plan of a prepared statement after the fifth execution. */
const runs = 8

export async function readPlans(server: ScaleServer, size: number, mode: PlanMode): Promise<KnownPlan[]> {
  const course = await openCourse(server, size, { plan_cache_mode: mode, ...explaining })
  const plans: KnownPlan[] = []
  for (const probe of probes) {
    if (!probe.name.includes(process.env['SCALE_ONLY'] ?? '')) continue
    // Each run may use other statements and other rows.
    const noted = new Map<string, LoggedPlan[]>()
    for (let run = 0; run < Math.min(runs, probe.runs ?? runs); run += 1) {
      const from = statSync(server.logPath).size
      const asked = new Set<string>()
      await course.run(probe, (taken) => {
        for (const { sql } of taken) asked.add(sql)
      })
      await course.say('end')
      const logged = readLogged(await Bun.file(server.logPath).slice(from).text())
      for (const sql of asked) {
        const plan = logged.findLast(({ query }) => isSame(query, sql))
        if (plan === undefined) throw new Error(`no plan was noted for ${probe.name}: ${sql}`)
        noted.set(sql, [...(noted.get(sql) ?? []), plan])
      }
    }
    plans.push(...[...noted].map(([sql, logged], at) => toKnown(probe, sql, logged, noted.size, at)))
  }
  await course.close()
  return plans
}

function toKnown(probe: Probe, sql: string, logged: readonly LoggedPlan[], statements: number, at: number): KnownPlan {
  const { query = '', plan = '' } = logged.at(-1) ?? {}
  const { statement } = describe(probe, sql, statements, at)
  const name = statement === undefined ? probe.name : `${probe.name}: ${statement}`
  const touched = logged.map((each) => pagesOf(each.plan)).toSorted((one, other) => one - other)
  const pages = touched[Math.floor(touched.length / 2)] ?? Number.NaN
  return { name, file: fileOf(name), probe: probe.name, source: sql, sql: query, plan, shape: shapeOf(plan), pages }
}

export function writePlans(
  folder: string,
  size: number,
  generic: readonly KnownPlan[],
  custom: readonly KnownPlan[],
): void {
  mkdirSync(folder, { recursive: true })
  for (const { file, probe, source, sql, plan, shape } of generic) {
    const other = custom.find((each) => each.probe === probe && each.source === source)
    const comparison =
      other === undefined || other.shape === shape
        ? 'The plan for one set of values has the same shape.'
        : `The plan for one set of values has another shape:\n\n${other.plan}`
    const head = `${size.toLocaleString('en-US')} manifests; the plan for any values (plan_cache_mode = force_generic_plan).`
    writeFileSync(join(folder, `${file}.txt`), `${head}\n\n${sql.trim()}\n\n${plan}\n\n${comparison}\n`)
  }
}

interface LoggedPlan {
  readonly query: string
  readonly plan: string
}

const loggedPlan =
  /plan:\n\tQuery Text: ([\s\S]*?)\n\t((?:Limit|Sort|Unique|LockRows|[A-Z][A-Za-z ]*?)(?: on | using | {2}\(cost)[\s\S]*)$/

/** The following lines of a logged plan begin with a tab. */
function readLogged(log: string): LoggedPlan[] {
  return log.split(/^(?=\d{4}-\d\d-\d\d )/m).flatMap((entry) => {
    const found = loggedPlan.exec(entry)
    if (found === null) return []
    const [, query = '', plan = ''] = found
    return [{ query: query.replaceAll('\n\t', '\n'), plan: plan.replaceAll('\n\t', '\n').trimEnd() }]
  })
}

/**
 * The log contains the translated text, so only the part before the first macro or parameter, and the length, are
 * compared.
 */
function isSame(logged: string, source: string): boolean {
  const words = source.split(/\{[^}]*\}/)
  let at = 0
  for (const word of words) {
    const found = logged.indexOf(word, at)
    if (found === -1) return false
    at = found + word.length
  }
  return at <= logged.length && logged.startsWith(words[0] ?? '')
}

function fileOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
}

/** The first line with this figure is about the whole plan. */
function pagesOf(plan: string): number {
  const [, hit = '0', , read = '0'] = /Buffers: shared(?: hit=(\d+))?( read=(\d+))?/.exec(plan) ?? []
  return Number(hit) + Number(read)
}

/** Nodes, tables and indexes, without the figures. */
function shapeOf(plan: string): string {
  return plan
    .split('\n')
    .filter((line) => /\(cost=/.test(line))
    .map((line) => line.replace(/\(cost.*$/, '').trim())
    .join('\n')
}
