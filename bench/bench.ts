// `npm run bench`: compares Berth with other registries. bench/README.md describes the options.
// Exit code: 0 all bars met; 1 a bar missed; 2 could not measure; 3 the control met a bar, so the bar proves nothing.
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { judgeRows, type Verdict } from './bars.ts'
import { type Plan, parsePlan } from './bench-options.ts'
import { measureGroups, type Run } from './comparison.ts'
import type { Contestant } from './contestants.ts'
import { findCores } from './cores.ts'
import type { Line } from './figures.ts'
import { measureFleet } from './fleet/fleet.ts'
import { observeMachineLoad } from './machine-load.ts'
import { measureMemory } from './memory.ts'
import { formatPage } from './performance-page.ts'
import { canMeasureProcesses } from './process-cost.ts'
import { listRegistries } from './registries.ts'
import { formatVerdict } from './report.ts'
import { compareWithStored, storeRatios } from './stored-ratios.ts'
import { measureWithZb } from './zb.ts'

const tmpfsMagic = 0x01021994
const pagePath = join(import.meta.dir, '..', 'docs', 'reference', 'performance.md')

async function main(): Promise<number> {
  const plan = parsePlan(Bun.argv.slice(2))
  if (!canMeasureProcesses) throw new Error('CPU seconds are read from /proc, which only Linux has')
  if (Bun.which('curl') === null) throw new Error('curl is needed to move the large blobs')
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'))
  const running: Contestant[] = []
  const cleanUp = async () => {
    await Promise.allSettled(running.map((contestant) => contestant.stop()))
    rmSync(folder, { recursive: true, force: true })
  }
  const interrupt = () => void cleanUp().finally(() => process.exit(2))
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  try {
    if (plan.fleet) return conclude(plan, await measureFleet(plan, folder, running))
    checkFolder(folder, plan)
    return await compare({ plan, folder, running, cores: findCores() })
  } finally {
    await cleanUp()
  }
}

async function compare(run: Run): Promise<number> {
  const { plan } = run
  console.log(describeRun(run))
  const describeOthers = observeMachineLoad()
  const measured = await measureGroups(run)
  const otherLines = plan.name === 'full' ? await measureRest(run) : []
  const machineLoad = describeOthers()
  console.log(`\n${machineLoad}`)
  const verdicts = judgeRows(measured)
  if (plan.regression) return concludeRegression(measured)
  if (plan.name === 'full') {
    const day = new Date().toISOString().slice(0, 10)
    const { workers } = plan
    writeFileSync(pagePath, formatPage({ measured, otherLines, verdicts, workers, day, machineLoad }))
    storeRatios(measured)
    console.log(`\n${pagePath} and the stored ratios are written`)
  }
  return conclude(plan, verdicts)
}

async function measureRest(run: Run): Promise<Line[]> {
  const { zb } = run.plan.programs
  return [...(await measureMemory(run)), ...(zb === undefined ? [] : await measureWithZb(run, zb))]
}

/** Prints the counts in the form that CI reads. */
function concludeRegression(measured: Parameters<typeof compareWithStored>[0]): number {
  const regressions = compareWithStored(measured)
  console.log('\nWork per CPU second, Berth divided by the peer:')
  for (const { isGood, text } of regressions) console.log(`${isGood ? 'good' : 'BAD '}  ${text}`)
  const failed = regressions.filter(({ isGood }) => !isGood).length
  console.log(`${regressions.length - failed} pass, ${failed} fail`)
  return failed === 0 ? 0 : 1
}

function conclude(plan: Plan, verdicts: readonly Verdict[]): number {
  console.log(`\n${verdicts.map(formatVerdict).join('\n')}`)
  const passed = verdicts.filter(({ outcome }) => outcome === 'PASS').length
  const missed = verdicts.filter(({ outcome }) => outcome === 'MISS').length
  console.log(`\n${passed} of ${passed + missed} bars met`)
  if (plan.control && passed > 0) {
    console.log('THE CONTROL FAILED: a server that is slow on purpose has met a bar, so that bar proves nothing')
    return 3
  }
  if (plan.control) console.log('The control is in order: the slow server has missed every bar')
  return missed === 0 ? 0 : 1
}

function describeRun({ plan, cores }: Run): string {
  const names = listRegistries(plan).map(({ name }) => name)
  return [
    `Berth bench, ${plan.name}${plan.control ? '; CONTROL: "Berth" below is a server that is slow on purpose' : ''}`,
    `Bun ${Bun.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}, load average ${formatLoad()}`,
    cores === undefined
      ? 'NOT PINNED (one core, or no taskset): the figures are rough.'
      : `CPU time: servers on core ${cores.server}, load on core ${cores.load}. Speed: both on all cores.`,
    `Registries: ${names.join('; ')}.`,
    'Figures are medians (lowest-highest). All contestants take turns in every round. CPU time is that of the servers.',
    'Berth checks credentials, logs each request and syncs. The others do none of this, in their favour.',
  ].join('\n')
}

function checkFolder(folder: string, plan: Plan): void {
  const { bavail, bsize, type } = statfsSync(folder)
  if (type === tmpfsMagic)
    console.log(`WARNING: ${folder} is in memory, where fsync costs nothing; set TMPDIR to a disk`)
  // The source, the files that warm the memory, and one blob for each registry and round.
  const blobs = 5 + (listRegistries(plan).length + 1) * (1 + plan.uploadRounds)
  const neededBytes = plan.largeBlobBytes * blobs
  if (bavail * bsize < neededBytes) throw new Error(`${folder} has less than the ${neededBytes} free bytes this needs`)
}

function formatLoad(): string {
  return loadavg()[0]?.toFixed(2) ?? 'unknown'
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error)
  return 2
})
