// `npm run bench -- [--fleet] [--quick] [--control]`: compares the hot paths with other servers.
// Exit code: 0 all bars met; 1 a bar missed; 2 could not measure; 3 the control met a bar, so the bar proves nothing.
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { cpus, loadavg, release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { downloadComparisons, judge, manifestComparisons, uploadComparisons, type Verdict } from './bars.ts'
import { type Plan, parsePlan } from './bench-options.ts'
import { createBlobSource } from './blob-source.ts'
import type { Contestant } from './contestants.ts'
import { startField } from './contestants-of-run.ts'
import { type Cores, findCores, pinProcess } from './cores.ts'
import { measureFleet } from './fleet/fleet.ts'
import { observeMachineLoad } from './machine-load.ts'
import { chooseLoadGenerator } from './manifest-load.ts'
import { measureDownloads, measureManifests, measureUploads, uploadFirstBlob } from './measured-paths.ts'
import { canMeasureProcesses, readPeakResidentBytes } from './process-cost.ts'
import { formatByteTable, formatMemory, formatRequestTable, formatVerdict } from './report.ts'

const tmpfsMagic = 0x01021994

async function main(): Promise<number> {
  const plan = parsePlan(Bun.argv.slice(2))
  if (!canMeasureProcesses) throw new Error('CPU seconds are read from /proc, which only Linux has')
  if (Bun.which('curl') === null) throw new Error('curl is needed to move the big blobs')
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
    return conclude(plan, await measure(plan, folder, running))
  } finally {
    await cleanUp()
  }
}

async function measure(plan: Plan, folder: string, running: Contestant[]): Promise<Verdict[]> {
  const describeOthers = observeMachineLoad()
  const load = chooseLoadGenerator(folder)
  const cores = findCores()
  // Programs that start from here on inherit the core of the benchmark. The servers get another core when they run.
  if (cores !== undefined) pinProcess(process.pid, cores.load)
  console.log(describeRun(plan, load.name, cores))
  const source = createBlobSource(folder, plan.blobSizeBytes)
  const field = await startField({ plan, folder, running, cores, blobPath: source.path })
  const digest = await uploadFirstBlob(field, source)
  const size = `${source.sizeBytes / 2 ** 30} GiB`

  const manifests = await measureManifests(field, load)
  const { connections, manifestRounds, manifestSliceSeconds, downloadRounds, downloadsPerSlice, uploadRounds } = plan
  const slices = `${manifestRounds} rounds of ${manifestSliceSeconds} s`
  console.log(formatRequestTable(`\nManifest GET, ${connections} keep-alive connections, ${slices}`, manifests))
  const downloads = await measureDownloads(field, digest, source.sizeBytes)
  const times = `${downloadRounds} rounds of ${downloadsPerSlice} downloads`
  console.log(formatByteTable(`\nBlob GET, ${size}, ${times}`, downloads))
  const uploads = await measureUploads(field, source)
  const freshness = 'one upload each, its content new to the registry'
  console.log(formatByteTable(`\nBlob upload, ${size}, ${uploadRounds} rounds of ${freshness}`, uploads))
  console.log(`\n${formatMemory(running.map(({ name, pid }) => [name, readPeakResidentBytes(pid)]))}`)
  console.log(`\n${describeOthers()}`)
  return [
    ...judge(manifestComparisons, manifests),
    ...judge(downloadComparisons, downloads),
    ...judge(uploadComparisons, uploads),
  ]
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

function describeRun(plan: Plan, loadName: string, cores: Cores | undefined): string {
  return [
    `Berth bench, ${plan.name}${plan.control ? '; CONTROL: "berth" below is a server that is slow on purpose' : ''}`,
    `Bun ${Bun.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}, load average ${formatLoad()}`,
    cores === undefined
      ? 'NOT PINNED (one core, or no taskset): the figures of blob GET are rough.'
      : `Servers on core ${cores.server}, load on core ${cores.load}: ${loadName} for manifests, curl for blobs.`,
    'Figures are medians of CPU seconds (utime + stime) of the server alone, all contestants in turn in every round.',
    'Berth is asked with credentials (Basic, an API key). docker-registry is asked WITHOUT any, and runs without access',
    'log and health checks: all in its favour. "With password" is the same program behind htpasswd with bcrypt at its',
    'lowest cost: printed, but no fair rival, so no bar is set against it.',
  ].join('\n')
}

function checkFolder(folder: string, plan: Plan): void {
  const { bavail, bsize, type } = statfsSync(folder)
  if (type === tmpfsMagic)
    console.log(`WARNING: ${folder} is in memory, where fsync costs nothing; set TMPDIR to a disk`)
  // The source, the one copy of the bare loop, the files that warm the memory, and the blobs of the registries.
  const kept = 1 + plan.uploadRounds
  const neededBytes = plan.blobSizeBytes * (5 + kept * (plan.uploadByPatchToo ? 3 : 2))
  if (bavail * bsize < neededBytes) throw new Error(`${folder} has less than the ${neededBytes} free bytes this needs`)
}

function formatLoad(): string {
  return loadavg()[0]?.toFixed(2) ?? 'unknown'
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error)
  return 2
})
