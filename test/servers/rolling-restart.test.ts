// Two replicas behind an nginx are restarted one after the other while clients pull and push: what they notice of it.
import { describe, expect } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { authorization, type PushedImage, pushImage } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { nginx } from '../support/replicas/nginx-server.ts'
import { type BalancedReplicas, type Replica, startBalancedReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { auditShared } from '../support/replicas/shared-stores-audit.ts'

const need: Need = nginx.isMet ? sharedStoresNeed : nginx
/** Of both replicas. */
const restarts = Number(process.env['RESTARTS'] ?? 5)
const mebi = 1024 * 1024

interface PullableImage extends PushedImage {
  readonly repository: string
  readonly tag: string
  /** By digest. */
  readonly contents: ReadonlyMap<string, Uint8Array>
}

/**
 * Clients that pull the same images again and again. Each request is sent once, on a connection of its own, and the
 * answer is compared to the last byte.
 */
class OneShotPullers {
  readonly figures = { requests: 0, bytes: 0, longestMs: 0, failures: [] as string[] }
  readonly #url: string

  constructor({ url }: { readonly url: string }) {
    this.#url = url
  }

  async pullUntil(image: PullableImage, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const prefix = `/v2/${image.repository}`
      await this.#pull(`${prefix}/manifests/${image.tag}`, image.bytes)
      for (const [digest, bytes] of image.contents) await this.#pull(`${prefix}/blobs/${digest}`, bytes)
    }
  }

  async #pull(path: string, expected: Uint8Array): Promise<void> {
    const startedAt = performance.now()
    const { figures } = this
    try {
      const answer = await fetch(this.#url + path, { headers: { authorization }, keepalive: false })
      const { status } = answer
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (status !== 200) throw new Error(`status ${status}`)
      if (!bytes.equals(expected)) throw new Error(`${bytes.length} other bytes`)
      figures.bytes += bytes.length
    } catch (error) {
      figures.failures.push(`${path}: ${error instanceof Error ? error.message : String(error)}`)
    }
    figures.requests += 1
    figures.longestMs = Math.max(figures.longestMs, performance.now() - startedAt)
  }
}

/** Two replicas that go on for so long once they are told to stop. */
const startFleet = (delay: string) => startBalancedReplicas({ BERTH_SERVER__SHUTDOWN_DELAY: delay })

const fleet = useRunning(() => startFleet('0s'), need)

async function makeImage({ replicas }: Pick<BalancedReplicas, 'replicas'>, which: number): Promise<PullableImage> {
  const [repository, tag] = ['pulled/app', `tag-${which}`]
  const layers = [generatedBytes(20_000, which), generatedBytes(3 * mebi, which + 100)]
  const pushed = await pushImage(replicas.a, repository, tag, layers)
  return { ...pushed, repository, tag, contents: new Map(layers.map((layer) => [digestOf(layer), layer])) }
}

/** Those that are served at the front door by either replica; gives what the clients saw while `act` ran. */
async function underLoad({ replicas, balancer }: BalancedReplicas, act: () => Promise<void>) {
  const images = [await makeImage({ replicas }, 1), await makeImage({ replicas }, 2)]
  const pullers = new OneShotPullers(balancer)
  const pushers = new PushingClients()
  let isOver = false
  const load = [
    ...[0, 1, 2].map((at) => pullers.pullUntil(images[at % 2] ?? unreachable(), () => isOver)),
    ...[0, 1].map((client) => pushers.pushUntil(balancer, client, () => isOver)),
  ]
  const enough = pullers.figures.requests + 10
  await until('the load is on', () => pullers.figures.requests >= enough)
  try {
    await act()
  } finally {
    isOver = true
    await Promise.all(load)
  }
  const losses = await pushers.findLosses(balancer)
  const { faults } = await auditShared(replicas.stores)
  return { pulls: pullers.figures, pushes: pushers.figures, losses, faults }
}

function unreachable(): never {
  throw new Error('there are two images')
}

function report(how: string, { pulls, pushes, losses }: Awaited<ReturnType<typeof underLoad>>): void {
  console.log(
    `rolling restart, ${how}: ${pulls.requests} pulls (${Math.round(pulls.bytes / mebi)} MiB), ` +
      `${pulls.failures.length} failed, the longest took ${Math.round(pulls.longestMs)} ms; ${pushes.images} images in ` +
      `${pushes.requests} push requests, ${pushes.retries} tried again (${pushes.restartedUploads} uploads started again), ` +
      `${pushes.failures.length} failed, ${losses.length} lost`,
  )
}

async function eachInTurn({ replicas }: BalancedReplicas, restart: (replica: Replica) => Promise<void>): Promise<void> {
  for (let round = 0; round < restarts; round += 1) {
    for (const replica of replicas.all) {
      await restart(replica)
      await Bun.sleep(200)
    }
  }
}

/** New requests go to the other replicas while it is restarted. */
const restartDrained = async ({ replicas, balancer }: BalancedReplicas, replica: Replica): Promise<void> => {
  const others = replicas.all.filter((one) => one !== replica)
  await balancer.reload(others.map(({ url }) => url))
  await replica.restart()
  await balancer.reload(replicas.all.map(({ url }) => url))
}

describe(`a rolling restart of two replicas, ${restarts} times`, () => {
  const delayed = useRunning(() => startFleet('1s'), need)
  /** How each replica is restarted, and whether a push may have to be repeated. */
  const ways = [
    [
      'with SIGTERM, and a second in which all goes on',
      delayed,
      (_: BalancedReplicas, one: Replica) => one.restart(),
      false,
    ],
    ['with nothing but SIGTERM', fleet, (_: BalancedReplicas, one: Replica) => one.restart(), true],
    ['taken out of the balancer before', fleet, restartDrained, false],
  ] as const
  for (const [how, which, restart, mayRepeat] of ways) {
    testNeeding(
      need,
      `${how}: no pull fails, and ${mayRepeat ? 'every push succeeds when it is tried again' : 'no push either'}`,
      async () => {
        const seen = await underLoad(which, () => eachInTurn(which, (replica) => restart(which, replica)))
        report(`${restarts * 2} times ${how}`, seen)
        expect(seen.pulls.failures).toEqual([])
        expect(seen.pushes).toMatchObject({ failures: [], ...(!mayRepeat && { retries: 0 }) })
        expect({ losses: seen.losses, faults: seen.faults }).toEqual({ losses: [], faults: [] })
      },
      120_000 + restarts * 20_000,
    )
  }

  testNeeding(
    need,
    'control: a pull notices both at the same moment',
    async () => {
      const seen = await underLoad(fleet, async () => {
        await Promise.all(fleet.replicas.all.map((replica) => replica.restart()))
      })
      report('control, both at the same moment', seen)
      expect(seen.pulls.failures.length).toBeGreaterThan(0)
      expect(seen.losses).toEqual([])
    },
    120_000,
  )

  testNeeding(need, 'control: one byte that is not as it was pushed is noticed', async () => {
    const image = await makeImage(fleet, 3)
    const [[digest, bytes] = ['', new Uint8Array()]] = image.contents
    const altered = bytes.with(100, (bytes[100] ?? 0) ^ 1)
    const pullers = new OneShotPullers(fleet.balancer)
    let looks = 0
    await pullers.pullUntil({ ...image, contents: new Map([[digest, altered]]) }, () => looks++ > 0)
    expect(pullers.figures.failures).toEqual([`/v2/pulled/app/blobs/${digest}: ${bytes.length} other bytes`])
  })
})
