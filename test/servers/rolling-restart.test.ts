// Two replicas behind an nginx are restarted one after the other while clients pull and push: what they notice of it.
import { describe, expect } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { authorization, pushImage, type Target } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { nginx } from '../support/replicas/nginx-server.ts'
import { type BalancedReplicas, type Replica, startBalancedReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { auditShared } from '../support/replicas/shared-stores-audit.ts'

const need: Need = nginx.isMet ? sharedStoresNeed : nginx
/** Of both replicas. */
const restarts = Number(process.env['RESTARTS'] ?? 5)
const mebi = 1024 * 1024

/** One pull on a connection of its own; gives what is wrong with the answer. */
async function pull({ url }: Target, path: string, expected: Uint8Array): Promise<string | undefined> {
  try {
    const answer = await fetch(url + path, { headers: { authorization }, keepalive: false })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (answer.status !== 200) return `${path}: status ${answer.status}`
    return bytes.equals(expected) ? undefined : `${path}: ${bytes.length} other bytes`
  } catch (error) {
    return `${path}: ${String(error)}`
  }
}

const startFleet = (delay: string) => startBalancedReplicas({ BERTH_SERVER__SHUTDOWN_DELAY: delay })
const fleet = useRunning(() => startFleet('0s'), need)

/** A pushed image: path -> the bytes of its manifest and its layers. */
async function makeImage({ replicas }: BalancedReplicas, which: number): Promise<ReadonlyMap<string, Uint8Array>> {
  const layers = [generatedBytes(20_000, which), generatedBytes(3 * mebi, which + 100)]
  const { bytes } = await pushImage(replicas.a, 'pulled/app', `tag-${which}`, layers)
  const blobs = layers.map((layer) => [`/v2/pulled/app/blobs/${digestOf(layer)}`, layer] as const)
  return new Map<string, Uint8Array>([[`/v2/pulled/app/manifests/tag-${which}`, bytes], ...blobs])
}

/** What clients see that pull and push through the balancer while `act` runs. */
async function underLoad(replicas: BalancedReplicas, act: () => Promise<unknown>) {
  const images = [await makeImage(replicas, 1), await makeImage(replicas, 2)]
  const pushers = new PushingClients()
  const failedPulls: string[] = []
  let pulls = 0
  let isOver = false
  const pullUntilOver = async (at: number) => {
    while (!isOver)
      for (const [path, bytes] of images[at % 2] ?? []) {
        const failure = await pull(replicas.balancer, path, bytes)
        if (failure !== undefined) failedPulls.push(failure)
        pulls += 1
      }
  }
  const load = [
    ...[0, 1, 2].map(pullUntilOver),
    ...[0, 1].map((client) => pushers.pushUntil(replicas.balancer, client, () => isOver)),
  ]
  await until('the load is on', () => pulls >= 10)
  try {
    await act()
  } finally {
    isOver = true
    await Promise.all(load)
  }
  const losses = await pushers.findLosses(replicas.balancer)
  const { faults } = await auditShared(replicas.replicas.stores)
  const { images: pushed, retries, failures } = pushers.figures
  console.log(
    `rolling restart: ${pulls} pulls, ${failedPulls.length} failed; ${pushed} images pushed, repeated requests: ${[...retries].join(' ')}`,
  )
  return { failedPulls, retries, failures, losses, faults }
}

/** New requests go to the other replica while this one is restarted. */
async function restartDrained(replica: Replica): Promise<void> {
  const { replicas, balancer } = fleet
  await balancer.reload(replicas.all.filter((one) => one !== replica).map(({ url }) => url))
  await replica.restart()
  await balancer.reload(replicas.all.map(({ url }) => url))
}

describe(`a rolling restart of two replicas, ${restarts} times`, () => {
  const delayed = useRunning(() => startFleet('1s'), need)
  const restart = (replica: Replica) => replica.restart()
  /** How each replica is restarted, and whether a push may have to be repeated. */
  const ways = [
    ['with SIGTERM, and a second in which all goes on', delayed, restart, false],
    ['with nothing but SIGTERM', fleet, restart, true],
    ['taken out of the balancer before', fleet, restartDrained, false],
  ] as const
  for (const [how, which, act, mayRepeat] of ways) {
    testNeeding(
      need,
      `${how}: no pull fails, and ${mayRepeat ? 'every push succeeds when it is tried again' : 'no push either'}`,
      async () => {
        const { retries, ...seen } = await underLoad(which, async () => {
          for (let at = 0; at < restarts * 2; at += 1) {
            await act(at % 2 === 0 ? which.replicas.a : which.replicas.b)
            await Bun.sleep(200)
          }
        })
        expect(seen).toEqual({ failedPulls: [], failures: [], losses: [], faults: [] })
        if (!mayRepeat) expect([...retries]).toEqual([])
      },
      120_000 + restarts * 20_000,
    )
  }

  testNeeding(
    need,
    'control: a pull notices both at the same moment',
    async () => {
      const seen = await underLoad(fleet, () => Promise.all(fleet.replicas.all.map(restart)))
      expect(seen.failedPulls.length).toBeGreaterThan(0)
      expect(seen.losses).toEqual([])
    },
    120_000,
  )

  testNeeding(need, 'control: one byte that is not as it was pushed is noticed', async () => {
    for (const [path, bytes] of await makeImage(fleet, 3)) {
      const altered = bytes.with(100, (bytes[100] ?? 0) ^ 1)
      expect(await pull(fleet.balancer, path, altered)).toBe(`${path}: ${bytes.length} other bytes`)
    }
  })
})
