// The plan of every statement as the server itself notes it: of the prepared statement, asked by the adapter.
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
  /** As the adapter has it, and as the server was asked. */
  readonly source: string
  readonly sql: string
  readonly plan: string
  /** What the nodes have in common however many rows they met. */
  readonly shape: string
  /** Pages of 8 KiB that the statement touched, foreign keys aside: no machine, however busy, changes that. The median. */
  readonly pages: number
}

// Rows and buffers, but no times: those say more of a machine than of a plan.
const explaining = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
}

/** A prepared statement's plan is settled after the fifth time. */
const runs = 8

export async function readPlans(server: ScaleServer, size: number, mode: PlanMode): Promise<KnownPlan[]> {
  const course = await openCourse(server, size, { plan_cache_mode: mode, ...explaining })
  const plans: KnownPlan[] = []
  for (const probe of probes) {
    if (!probe.name.includes(process.env['SCALE_ONLY'] ?? '')) continue
    // Not every time the same ones are asked, nor of the same rows.
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

/** A logged plan goes on over lines that begin with a tab. */
function readLogged(log: string): LoggedPlan[] {
  return log.split(/^(?=\d{4}-\d\d-\d\d )/m).flatMap((entry) => {
    const found = loggedPlan.exec(entry)
    if (found === null) return []
    const [, query = '', plan = ''] = found
    return [{ query: query.replaceAll('\n\t', '\n'), plan: plan.replaceAll('\n\t', '\n').trimEnd() }]
  })
}

/** The logged text is the translated one: what stands before the first macro or parameter is enough, with the length. */
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

/** Of the first line that tells of them: that of the whole. */
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
