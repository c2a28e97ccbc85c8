// One run: each group of rows with new servers, in folders that are removed after the group.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from './bench-options.ts'
import type { Contestant } from './contestants.ts'
import { applyCores, type Cores } from './cores.ts'
import { chooseLoadGenerator } from './load-generator.ts'
import { listRegistries, type Registry } from './registries.ts'
import { formatSamples } from './report.ts'
import { measureRounds } from './rounds.ts'
import { downloadRows, uploadRow, uploadsAtOnceRow } from './rows/large-rows.ts'
import { pushRows } from './rows/push-rows.ts'
import { readRows } from './rows/read-rows.ts'
import type { Field, MeasuredRow, Row, RowGroup } from './rows/row.ts'

export interface Run {
  readonly plan: Plan
  readonly folder: string
  /** All processes that must be stopped if the benchmark is interrupted. */
  readonly running: Contestant[]
  readonly cores: Cores | undefined
}

export async function measureGroups(run: Run): Promise<MeasuredRow[]> {
  const load = chooseLoadGenerator(run.folder)
  const groups = [readRows(load), downloadRows, uploadRow('PUT'), uploadRow('PATCH'), uploadsAtOnceRow, pushRows]
  const measured: MeasuredRow[] = []
  for (const group of groups.filter(({ isQuick }) => isQuick || run.plan.name === 'full'))
    measured.push(...(await measureGroup(run, group)))
  return measured
}

async function measureGroup(run: Run, group: RowGroup): Promise<MeasuredRow[]> {
  const { plan, cores } = run
  return withField(run, group, async (field) => {
    const measured: MeasuredRow[] = []
    for (const row of await group.prepare(field)) {
      applyCores(cores, row.cores, row.slices)
      await warmUp(row)
      const samples = await measureRounds(row.slices, row.rounds, plan.rowSecondsMax)
      console.log(`\n${formatSamples(row, samples)}`)
      measured.push({ row, samples })
    }
    return measured
  })
}

/** The first rounds warm compilers and caches, and do not count. The rounds of large rows are long, so one is enough. */
async function warmUp({ rounds, slices }: Row): Promise<void> {
  for (let round = 0; round < Math.max(1, rounds / 5); round++)
    for (const slice of slices) {
      await slice.prepare?.()
      await slice.run()
    }
}

/** Starts the registries of a group, and stops them at the end. */
async function withField<T>(run: Run, group: RowGroup, work: (field: Field) => Promise<T>): Promise<T> {
  return withFolder(run, group.name, async (folder, enter) => {
    const registries: Contestant[] = []
    for (const registry of listRegistries(run.plan)) {
      if (registry.isSyncing && !group.withSyncingPeers) continue
      registries.push(await enter(startIn(folder, registry)))
    }
    const [berth] = registries
    if (berth === undefined) throw new Error('Berth takes part in every group')
    return work({ plan: run.plan, folder, registries, berth, enter })
  })
}

/** Starts one registry after the other, each alone. */
export async function startEach(
  run: Run,
  name: string,
  work: (contestant: Contestant) => Promise<void>,
  takesPart: (registry: Registry) => boolean = ({ isSyncing }) => isSyncing !== true,
): Promise<void> {
  for (const registry of listRegistries(run.plan).filter(takesPart))
    await withFolder(run, name, async (folder, enter) => work(await enter(startIn(folder, registry))))
}

function startIn(folder: string, registry: Registry): Promise<Contestant> {
  const own = join(folder, registry.name.replaceAll(/\W+/g, '-'))
  mkdirSync(own)
  return registry.start(own)
}

type Enter = Field['enter']

/** Stops everything that has entered, and removes the folder. */
async function withFolder<T>(run: Run, name: string, work: (folder: string, enter: Enter) => Promise<T>): Promise<T> {
  const folder = join(run.folder, name.replaceAll(' ', '-'))
  mkdirSync(folder)
  // Servers in Go start one thread for each core that they may use then.
  applyCores(run.cores, 'shared', [])
  const entered: Contestant[] = []
  const enter = async (starting: Promise<Contestant>) => {
    const contestant = await starting
    entered.push(contestant)
    run.running.push(contestant)
    return contestant
  }
  try {
    return await work(folder, enter)
  } finally {
    await Promise.allSettled(entered.map((contestant) => contestant.stop()))
    for (const contestant of entered) run.running.splice(run.running.indexOf(contestant), 1)
    rmSync(folder, { recursive: true, force: true })
  }
}
