// `npm run bench -- --fleet`: compares Berth on PostgreSQL and S3 with docker-registry on the same S3.
import { cpus, loadavg, release } from 'node:os'
import { judge, type Verdict } from '../bars.ts'
import type { Plan } from '../bench-options.ts'
import type { Contestant } from '../contestants.ts'
import { type Cores, findCores, pinProcess } from '../cores.ts'
import { chooseLoadGenerator } from '../load-generator.ts'
import { observeMachineLoad } from '../machine-load.ts'
import { listProcessTree, readPeakResidentBytes } from '../process-cost.ts'
import { formatFleetTable, formatMemory } from '../report.ts'
import { measureRounds } from '../rounds.ts'
import { fleetComparisons } from './fleet-bars.ts'
import { enterPeer, startOurs } from './fleet-contestants.ts'
import { bigBlobPhases, smallAnswerPhases } from './fleet-measured-paths.ts'
import { type FleetStores, startFleetStores } from './fleet-stores.ts'

export async function measureFleet(plan: Plan, folder: string, running: Contestant[]): Promise<Verdict[]> {
  const describeOthers = observeMachineLoad()
  const cores = findCores()
  // Programs that start from here on inherit the core of the benchmark. The measured servers get another core when they
  // run.
  if (cores !== undefined) pinProcess(process.pid, [cores.load])
  const stores = await startFleetStores()
  try {
    const verdicts = await compare({ plan, folder, running, stores, cores })
    console.log(`\n${describeOthers()}`)
    return verdicts
  } finally {
    // The registries stop before the stores that they use.
    await Promise.allSettled(running.splice(0).map((contestant) => contestant.stop()))
    await stores.stop()
  }
}

interface Comparing {
  readonly plan: Plan
  readonly folder: string
  readonly running: Contestant[]
  readonly stores: FleetStores
  readonly cores: Cores | undefined
}

async function compare({ plan, folder, running, stores, cores }: Comparing): Promise<Verdict[]> {
  const load = chooseLoadGenerator(folder)
  console.log(describeRun(plan, stores, load.nameOf('GET'), cores))
  const pinTree = (pid: number) => {
    if (cores !== undefined) for (const member of listProcessTree(pid)) pinProcess(member, [cores.server])
  }
  // Processes that it starts for connections inherit its core.
  pinTree(stores.postgresPid)
  const enter = async (starting: Promise<Contestant>): Promise<Contestant> => {
    const contestant = await starting
    running.push(contestant)
    pinTree(contestant.pid)
    return contestant
  }
  const ours = await startOurs(plan, { folder, stores, enter })
  const contestants = [ours, ...(await enterPeer({ folder, stores, enter }))]
  const bench = { plan, folder, load, contestants }
  const phases = [...(await smallAnswerPhases(bench)), ...(await bigBlobPhases(bench))]

  const verdicts: Verdict[] = []
  for (const { title, unit, detail, isManifest, rounds, slices } of phases) {
    // One round warms compilers, caches and connections, and does not count.
    for (const warmUp of slices) {
      await warmUp.prepare?.()
      await warmUp.run()
    }
    const samples = await measureRounds(slices, rounds)
    console.log(formatFleetTable(`\n${title}, ${detail}, ${rounds} rounds`, samples, unit))
    verdicts.push(...judge(fleetComparisons(title, isManifest), samples))
  }
  const peaks = running.map(({ name, pid }) => [name, readPeakResidentBytes(pid)] as const)
  console.log(`\n${formatMemory(peaks)}`)
  return verdicts
}

function describeRun(plan: Plan, stores: FleetStores, loadName: string, cores: Cores | undefined): string {
  const control = plan.control ? '; CONTROL: "berth" below is behind a proxy that is slow on purpose' : ''
  return [
    `Berth bench of a fleet, ${plan.name}${control}`,
    `Bun ${Bun.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}, load average ${loadavg()[0]?.toFixed(2)}`,
    `PostgreSQL ${stores.postgresVersion} (fsync off) for Berth; Ceph ${stores.s3.version} in memory for both, one bucket.`,
    cores === undefined
      ? 'NOT PINNED (one core, or no taskset).'
      : `Registries and PostgreSQL on core ${cores.server}; Ceph and the load on core ${cores.load}: ${loadName} for GET of what is small,`,
    'own client for HEAD, curl for big blobs. Figures are medians; all contestants in turn in every round.',
    "CPU is utime + stime of the registry, and PostgreSQL's is counted to Berth. Berth is asked with credentials and logs",
    'each request; docker-registry is asked WITHOUT any, and runs without access log and health checks, blob descriptors',
    'in memory, redirects off: all in its favour.',
  ].join('\n')
}
