// Measures how the statements of the metadata store behave as the registry grows. docs/design/scale.md has the results.
// It is not a part of `npm test` or `npm run bench`. It needs Linux and the programs of PostgreSQL.
//
//     export POSTGRES_BIN=/usr/lib/postgresql/15/bin SCALE_FOLDER=/tmp/berth-scale
//     run() { node scripts/with-bun.mjs run bench/scale/scale.ts "$@"; }
//     run generate 10000; run generate 1000000; run generate 10000000     seconds; two minutes; half an hour and 40 GB
//     run measure                                                         every statement at three sizes, as Markdown
//     run measure force_custom_plan                                       the same, with plans for single values only
//     run plans 10000000 [folder]                                         all plans as files, and a table of them
//     run load 10000000 60 5 anywhere                                     seconds, percentage of pushes, their target
//     run collect 10000000 20                                             one collector, for 20 seconds
//     run copy 1000; run copy 10000; run copy 100000; run copy 1000000    copies the rows from PostgreSQL to SQLite
//     run measure-sqlite                                                  every statement on the four copies
//     run growth                                                          servers on three of the copies; writes the page
//     run hot sqlite 6000; run hot postgres 6000 [source tree]            one repository, before and after 6000 pushes
//
// Each command starts the server in SCALE_FOLDER and stops it. `run serve` keeps it running for the next commands.
// No command removes the folder. SCALE_ONLY=<part of a name> limits a command to the probes with this part.
import { join } from 'node:path'
import { observeMachineLoad } from '../machine-load.ts'
import { runCollector } from './collect.ts'
import { generate } from './generate.ts'
import { measureGrowth } from './growth.ts'
import { writeGrowthSection } from './growth-report.ts'
import { runHotDay } from './hot-repository.ts'
import { type LoadPlan, runClient, runLoad } from './load.ts'
import { measure, type PlanMode } from './measure.ts'
import { formatDigest } from './plan-digest.ts'
import { type KnownPlan, readPlans, writePlans } from './plans.ts'
import { checkControl, formatFigures } from './report.ts'
import { type ScaleServer, startScaleServer } from './server.ts'
import { copyToSqlite } from './sqlite-copy.ts'

const folder = process.env['SCALE_FOLDER'] ?? '/tmp/berth-scale'
const sizes = [10_000, 1_000_000, 10_000_000]
const sqliteSizes = [1_000, 10_000, 100_000, 1_000_000]
const growthSizes = [1_000, 100_000, 1_000_000]
const modes: readonly PlanMode[] = ['auto', 'force_generic_plan', 'force_custom_plan']
const targets: readonly LoadPlan['target'][] = ['anywhere', 'one account', 'one repository']

function parseSize(word: string | undefined): number {
  const size = Number(word)
  if (!sizes.includes(size) && !sqliteSizes.includes(size)) throw new Error(`${word} is no size`)
  return size
}

function parseMode(word: string | undefined): PlanMode {
  const mode = modes.find((each) => each === (word ?? 'auto'))
  if (mode === undefined) throw new Error(`one of ${modes.join(', ')}`)
  return mode
}

async function withServer(work: (server: ScaleServer) => Promise<unknown>): Promise<void> {
  const server = await startScaleServer(folder)
  try {
    await work(server)
  } finally {
    await server.stop()
  }
}

async function measureAll(server: ScaleServer, mode: PlanMode): Promise<void> {
  const figures = await measure(server, sizes, mode)
  const plans = new Map<number, KnownPlan[]>()
  for (const size of sizes) plans.set(size, await readPlans(server, size, 'force_generic_plan'))
  console.log(formatFigures(figures, plans))
  if (process.env['SCALE_ONLY'] === undefined) checkControl(figures)
}

async function measureSqlite(server: ScaleServer): Promise<void> {
  const figures = await measure(server, sqliteSizes, 'auto', folder)
  console.log(formatFigures(figures, new Map()))
  if (process.env['SCALE_ONLY'] === undefined) checkControl(figures)
}

async function measureAndWriteGrowth(): Promise<void> {
  const describeOthers = observeMachineLoad()
  const table = await measureGrowth(folder, growthSizes)
  const machineLoad = describeOthers()
  console.log(`${table}\n\n${machineLoad}`)
  writeGrowthSection(table, machineLoad)
}

async function keepPlans(server: ScaleServer, size: number, into: string): Promise<void> {
  const generic = await readPlans(server, size, 'force_generic_plan')
  writePlans(into, size, generic, await readPlans(server, size, 'force_custom_plan'))
  console.log(formatDigest(generic))
}

function load(server: ScaleServer, size: number, words: readonly string[]): Promise<string> {
  const [seconds = '60', pushes = '5', target = 'anywhere', processes = '1', atOnce = '8'] = words
  const where = targets.find((each) => each === target)
  if (where === undefined) throw new Error(`one of ${targets.join(', ')}`)
  const numbers = {
    seconds: Number(seconds),
    pushes: Number(pushes),
    processes: Number(processes),
    atOnce: Number(atOnce),
  }
  return runLoad(server, size, { ...numbers, target: where }, [process.execPath, import.meta.path, 'client'])
}

const [command, first, ...words] = Bun.argv.slice(2)
if (command === 'generate') await withServer((server) => generate(server, parseSize(first)))
else if (command === 'measure') await withServer((server) => measureAll(server, parseMode(first)))
else if (command === 'copy') await withServer((server) => copyToSqlite(server, folder, parseSize(first)))
else if (command === 'measure-sqlite') await withServer(measureSqlite)
else if (command === 'growth') await measureAndWriteGrowth()
else if (command === 'plans')
  await withServer((server) => keepPlans(server, parseSize(first), words[0] ?? join(folder, 'plans')))
else if (command === 'load')
  await withServer(async (server) => console.log(await load(server, parseSize(first), words)))
else if (command === 'collect')
  await withServer(async (server) => console.log(await runCollector(server, parseSize(first), Number(words[0]))))
else if (command === 'client')
  console.log(JSON.stringify(await runClient(first ?? '', parseSize(words[0]), JSON.parse(words[1] ?? '{}'))))
else if (command === 'hot') {
  const [pushes = '6000', source = join(import.meta.dir, '../..')] = words
  const run = async (server?: ScaleServer) => console.log(await runHotDay(folder, server, Number(pushes), source))
  await (first === 'postgres' ? withServer(run) : run())
} else if (command === 'serve')
  await withServer(() => new Promise((resolve) => process.once('SIGTERM', resolve).once('SIGINT', resolve)))
else throw new Error('generate, measure, plans, load, collect, hot or serve')
