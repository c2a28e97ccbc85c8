// Runs every statement many times through the adapter, with keys drawn from the rows, and measures the times.

import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import type { Awaitable } from '../../src/ports/awaitable.ts'
import type { Tables } from '../../src/ports/metadata-store.ts'
import { databaseOf, openDatabase } from './generate.ts'
import type { Probe } from './probe.ts'
import { Coverage, probes } from './probes.ts'
import { drawWorld, type World } from './sample.ts'
import type { ScaleServer } from './server.ts'
import { sqliteFileOf } from './sqlite-copy.ts'
import { type Taken, watchDatabase } from './watched-database.ts'

export interface Figure {
  readonly probe: string
  readonly kind: Probe['kind']
  readonly grows: string | undefined
  /** Which statement of a probe, if it runs several: `2 INSERT blob_queue`. */
  readonly statement: string | undefined
  readonly sql: string
  readonly runs: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Ends every transaction, so that no probe changes rows. */
class Undone extends Error {}

const usualRuns = 600
const rounds = 3

export type Figures = Map<number, Figure[]>

export type PlanMode = 'auto' | 'force_generic_plan' | 'force_custom_plan'

export interface Course {
  readonly world: World
  run(probe: Probe, watched: (taken: readonly Taken[]) => void): Promise<void>
  /** Writes a note to the server's log, if the server logs statements. */
  say(word: string): Promise<void>
  missing(): string[]
  close(): Promise<void>
}

/**
 * Uses prepared statements, as a server does. PostgreSQL chooses between plans for one value and plans for any value.
 * With `sqliteFolder`, the statements run on the copy there; the keys still come from PostgreSQL.
 */
export async function openCourse(
  server: ScaleServer,
  size: number,
  settings: Record<string, string>,
  sqliteFolder?: string,
): Promise<Course> {
  const url = server.urlOf(databaseOf(size))
  const sql = new Bun.SQL({ url, max: 1 })
  await sql.unsafe(`ALTER DATABASE ${databaseOf(size)} RESET ALL`)
  const world = await drawWorld(sql, size)
  for (const [name, value] of Object.entries(settings)) {
    await sql.unsafe(`ALTER DATABASE ${databaseOf(size)} SET ${name} = '${value}'`)
  }
  await sql.close()
  const inner: Database =
    sqliteFolder === undefined ? await openDatabase(url) : new SqliteDatabase(sqliteFileOf(sqliteFolder, size))
  const { database, watch: watchStatements } = watchDatabase(inner)
  const store = await SqlMetadataStore.open(database)
  const coverage = new Coverage()
  const ask = (probe: Probe, tables: Tables, watched: (taken: readonly Taken[]) => void) => {
    const watch = async (work: () => Awaitable<unknown>) => {
      watched(await watchStatements(work))
    }
    return probe.act({ tables: coverage.of(tables), key: world.draw(), world, watch })
  }
  return {
    world,
    async run(probe, watched) {
      const work = async (tables: Tables) => {
        await ask(probe, tables, watched)
        throw new Undone()
      }
      await store.transaction(work).catch((error: unknown) => {
        if (!(error instanceof Undone)) throw new Error(`${probe.name} failed`, { cause: error })
      })
    },
    say: async (word) => {
      await database.all(`SELECT '${word}' AS said`, [])
    },
    missing: () => coverage.missing(store),
    async close() {
      await store.close()
      const last = new Bun.SQL({ url, max: 1 })
      await last.unsafe(`ALTER DATABASE ${databaseOf(size)} RESET ALL`)
      await last.close()
    },
  }
}

/**
 * Measures all sizes in turn, for each statement and round. Other load on the machine then affects all sizes in the
 * same way, so they can be compared.
 */
export async function measure(
  server: ScaleServer,
  sizes: readonly number[],
  mode: PlanMode,
  sqliteFolder?: string,
): Promise<Figures> {
  const courses = new Map<number, Course>()
  for (const size of sizes) courses.set(size, await openCourse(server, size, { plan_cache_mode: mode }, sqliteFolder))
  const figures: Figures = new Map(sizes.map((size) => [size, []]))
  for (const probe of probes.filter(({ name }) => name.includes(process.env['SCALE_ONLY'] ?? ''))) {
    const bySize = new Map(sizes.map((size) => [size, new Map<string, number[]>()]))
    // The first round loads pages into memory and settles the plans. It does not count.
    for (let round = 0; round <= rounds; round += 1) {
      for (const [size, course] of courses) await runRound(probe, course, round === 0 ? new Map() : bySize.get(size))
    }
    for (const [size, taken] of bySize) figures.get(size)?.push(...toFigures(probe, taken))
  }
  const missing = [...courses.values()].flatMap((course) => course.missing())
  for (const course of courses.values()) await course.close()
  if (missing.length > 0 && process.env['SCALE_ONLY'] === undefined)
    throw new Error(`nobody measures ${missing.join(', ')}`)
  return figures
}

/** Each round draws the same keys. */
async function runRound(probe: Probe, course: Course, taken = new Map<string, number[]>()): Promise<void> {
  course.world.rewind()
  for (let run = 0; run < Math.ceil((probe.runs ?? usualRuns) / rounds); run += 1) {
    await course.run(probe, (asked) => {
      for (const { sql, micros } of asked) taken.set(sql, [...(taken.get(sql) ?? []), micros])
    })
  }
}

function toFigures(probe: Probe, taken: ReadonlyMap<string, readonly number[]>): Figure[] {
  if (taken.size === 0) throw new Error(`${probe.name} asked nothing`)
  return [...taken].map(([sql, micros], at) => ({
    ...describe(probe, sql, taken.size, at),
    ...spread(micros),
    runs: micros.length,
  }))
}

export function describe({ name, kind, grows }: Probe, sql: string, statements: number, at: number) {
  return { probe: name, kind, grows, sql, statement: statements > 1 ? `${at + 1} ${firstWords(sql)}` : undefined }
}

/** `2 INSERT blob_queue`: distinguishes the statements of one method. Uses a nested table only if there is no other. */
function firstWords(sql: string): string {
  if (/^\s*UPDATE/.test(sql)) return `UPDATE ${/UPDATE\s+(\w+)/.exec(sql)?.[1]}`
  const named = /^\s*(\w+)[\s\S]*?\b(INTO|FROM|UPDATE)\s+(?!AS\b)(\w+)/i
  const [, verb = '', , table = ''] = named.exec(withoutNested(sql)) ?? named.exec(sql) ?? []
  return `${verb} ${table}`
}

function withoutNested(sql: string): string {
  const without = sql.replaceAll(/\([^()]*\)/g, '')
  return without === sql ? sql : withoutNested(without)
}

function spread(micros: readonly number[]): Pick<Figure, 'p50' | 'p95' | 'p99'> {
  const sorted = micros.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
