// How the costs of a server on SQLite change with the size of the registry. See the head of scale.ts.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { apiPrefix } from '../../src/http/mounts.ts'
import { randomBytes } from '../blob-source.ts'
import { applyCores, findCores } from '../cores.ts'
import { readResidentBytes } from '../process-cost.ts'
import * as client from '../registry-client.ts'
import { measureRounds, type Slice, spreadOf } from '../rounds.ts'
import { type DrawnManifest, type GrownServer, openGrownServer } from './grown-server.ts'
import { formatGrowth, type GrowthRow } from './growth-report.ts'

const rounds = 7
const atOnce = 4
const repeats = 200
const secondsMax = 25
const starts = 5
const roundsOfCollection = 5
const collectedBlobs = 800
const referrerCount = 50

/** What the operations of one server need. */
interface Scene {
  readonly server: GrownServer
  readonly subject: string
  /** A small blob in the largest repository, with its content. */
  readonly blob: string
  /** Manifests to delete. */
  readonly images: string[]
  next: number
}

interface Operation {
  readonly title: string
  /** How many different manifests must have been drawn. */
  readonly count?: number
  /** Runs before each `run`, and is not measured. */
  prepare?(scene: Scene): Promise<void>
  run(scene: Scene): Promise<void>
}

export async function measureGrowth(folder: string, sizes: readonly number[]): Promise<string> {
  const cores = findCores()
  rmSync(join(folder, 'growth'), { recursive: true, force: true })
  const scenes: Scene[] = []
  try {
    for (const size of sizes) scenes.push(await setScene(await openGrownServer(folder, size)))
    const memory = rowOf(
      'idle memory, MiB',
      scenes.map(({ server }) => readResidentBytes(server.pid) / 2 ** 20),
    )
    const servers = scenes.map(({ server }) => server)
    applyCores(cores, 'apart', servers)
    const rows: GrowthRow[] = []
    for (const operation of operations) rows.push(await measureOperation(operation, scenes))
    applyCores(cores, 'shared', servers)
    rows.push(...(await measureCollection(scenes)), await measureStarts(scenes), memory)
    return formatGrowth(sizes, rows)
  } finally {
    await Promise.allSettled(scenes.map(({ server }) => server.stop()))
    rmSync(join(folder, 'growth'), { recursive: true, force: true })
  }
}

async function setScene(server: GrownServer): Promise<Scene> {
  const repository = server.largest
  const image = await client.pushSmallBlobs(server, repository)
  const { digest: subject } = await client.pushManifest(server, image, 'subject', repository)
  for (let number = 0; number < referrerCount; number++) await pushReferrer(server, image, subject, number)
  const { digest: blob } = await client.pushBlob(server, randomBytes(1024), repository)
  return { server, subject, blob, images: [], next: 0 }
}

async function pushReferrer(server: GrownServer, image: client.Image, digest: string, number: number): Promise<void> {
  const subject = { mediaType: client.manifestType, digest, size: 1 }
  const referrer = { ...image, subject, annotations: { number: `${number}` } }
  await client.pushManifest(server, referrer, `referrer-${number}`, server.largest)
}

/**
 * How many different manifests and blobs are read. The few are the same number at all sizes, and are answered from
 * memory. Most of the many are read from the database; the smallest registry does not have so many.
 */
const few = 100
const many = 2000

const drawnReads = [few, many].flatMap((count) => [
  read(`manifest GET by tag, ${count} different`, (_, { repository, tag }) => `${repository}/manifests/${tag}`, count),
  read(
    `manifest GET by digest, ${count} different`,
    (_, { repository, digest }) => `${repository}/manifests/${digest}`,
    count,
  ),
  read(
    `manifest HEAD, ${count} different`,
    (_, { repository, tag }) => `${repository}/manifests/${tag}`,
    count,
    'HEAD',
  ),
  read(`blob HEAD, ${count} different`, (_, { repository, blob }) => `${repository}/blobs/${blob}`, count, 'HEAD'),
])

/** Requests of a registry client. */
const operations: readonly Operation[] = [
  ...drawnReads,
  read('blob GET of 1 KiB', ({ server, blob }) => `${server.largest}/blobs/${blob}`),
  read('tag list, n=100, largest repository', ({ server }) => `${server.largest}/tags/list?n=100&last=v1.1`),
  // The smallest registry does not fill a page of 100 repositories.
  read('catalog, n=10', () => '_catalog?n=10'),
  read('referrers of one subject', ({ server, subject }) => `${server.largest}/referrers/${subject}`),
  { title: '/stats', run: ({ server }) => get(server, `${apiPrefix}/stats`) },
  { title: 'push of an image into the largest repository', run: pushImage },
  {
    title: 'deletion of a manifest from the largest repository',
    prepare: pushImage,
    async run({ server, images }) {
      const digest = images.pop()
      if (digest === undefined) throw new Error('more deletions than pushes')
      await client.deleteManifest(server, digest, server.largest)
    },
  },
]

async function pushImage({ server, images }: Scene): Promise<void> {
  const image = await client.pushSmallBlobs(server, server.largest)
  images.push((await client.pushManifest(server, image, `pushed-${crypto.randomUUID()}`, server.largest)).digest)
}

function read(
  title: string,
  pathOf: (scene: Scene, drawn: DrawnManifest) => string,
  count = few,
  method: 'GET' | 'HEAD' = 'GET',
): Operation {
  return {
    title,
    count,
    run(scene) {
      const chosen = scene.server.drawn[scene.next++ % count]
      if (chosen === undefined) throw new Error('too few manifests were drawn')
      return get(scene.server, `/v2/${pathOf(scene, chosen)}`, method)
    },
  }
}

async function get(server: GrownServer, path: string, method: 'GET' | 'HEAD' = 'GET'): Promise<void> {
  const answer = await fetch(`${server.url}${path}`, { method, headers: server.headers })
  await answer.arrayBuffer()
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status}`)
}

async function measureOperation(operation: Operation, scenes: readonly Scene[]): Promise<GrowthRow> {
  const { title, count = 0, prepare, run } = operation
  const taking = scenes.filter(({ server }) => server.drawn.length >= count)
  const slices = taking.map(
    (scene): Slice => ({
      name: scene.server.name,
      pid: scene.server.pid,
      prepare: () => (prepare === undefined ? undefined : repeat(() => prepare(scene), repeats)),
      async run() {
        await repeat(() => run(scene), repeats)
        return repeats
      },
    }),
  )
  // Each manifest is read once before.
  if (prepare === undefined) for (const scene of taking) await repeat(() => run(scene), Math.max(repeats / 4, count))
  const samples = await measureRounds(slices, rounds, secondsMax)
  return rowOf(
    `${title}, CPU ms`,
    scenes.map(({ server: { name } }) => {
      const taken = samples.get(name)
      return taken && spreadOf(taken.map(({ cpuSeconds, work }) => (cpuSeconds / work) * 1000)).median
    }),
  )
}

async function repeat(work: () => Promise<void>, times: number): Promise<void> {
  let left = times
  const worker = async () => {
    while (left-- > 0) await work()
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** The command without work is measured first, and subtracted. */
async function measureCollection(scenes: readonly Scene[]): Promise<GrowthRow[]> {
  const idle: number[][] = scenes.map(() => [])
  const busy: number[][] = scenes.map(() => [])
  for (let round = 0; round < roundsOfCollection; round++) {
    for (const [index, { server }] of scenes.entries()) {
      await collectTwice(server)
      idle[index]?.push(await collectTwice(server))
      for (let count = 0; count < collectedBlobs; count++)
        await client.pushBlob(server, randomBytes(64), server.largest)
      busy[index]?.push(await collectTwice(server))
    }
  }
  const medians = (values: readonly number[][]) => values.map((each) => spreadOf(each).median)
  const idleMedians = medians(idle)
  return [
    rowOf(
      'collection of a blob, CPU ms',
      medians(busy).map((seconds, index) => ((seconds - (idleMedians[index] ?? 0)) * 1000) / collectedBlobs),
    ),
    rowOf('two collections without garbage (with the start of the command), CPU s', idleMedians),
  ]
}

/** A collection continues where the last one ended. Two look at all repositories of a registry of 100,000 manifests. */
async function collectTwice(server: GrownServer): Promise<number> {
  return (await server.collect()) + (await server.collect())
}

async function measureStarts(scenes: Scene[]): Promise<GrowthRow> {
  const times: number[][] = scenes.map(() => [])
  for (let round = 0; round < starts; round++) {
    for (const [index, scene] of scenes.entries()) {
      const server = await scene.server.restart()
      scenes[index] = { ...scene, server }
      times[index]?.push(server.startMs)
    }
  }
  return {
    ...rowOf(
      'start, ms',
      times.map((each) => spreadOf(each).median),
    ),
    atMost: 500,
  }
}

function rowOf(title: string, values: readonly (number | undefined)[]): GrowthRow {
  console.log(`${title}: ${values.map((value) => value?.toPrecision(3)).join(', ')}`)
  return { title, values }
}
