// Small pushes: whole images of small blobs, and manifests alone.
import type { Contestant } from '../contestants.ts'
import * as client from '../registry-client.ts'
import type { Slice } from '../rounds.ts'
import type { Field, Row, RowGroup } from './row.ts'

const clients = 12

export const pushRows: RowGroup = {
  name: 'pushes',
  isQuick: true,
  withSyncingPeers: false,
  async prepare(field): Promise<readonly Row[]> {
    const images = (title: string, push: client.BlobPush): Row =>
      rowOf(field, title, (contestant, repository) => pushSmallImage(contestant, repository, push))
    const quick = [images('small images, POST and PUT', client.pushBlob)]
    if (field.plan.name === 'quick') return quick
    for (const registry of field.registries) await client.pushImage(registry)
    return [
      ...quick,
      images('small images, POST, PATCH and PUT', client.pushBlobByPatch),
      { ...rowOf(field, 'manifest PUT', pushManifest), figures: ['CPU ms'] },
    ]
  },
}

type Push = (contestant: Contestant, repository: string) => Promise<void>

function rowOf({ plan, registries }: Field, title: string, push: Push): Row {
  return {
    title,
    figures: ['per second', 'CPU ms'],
    detail: `${clients} clients, slices of ${plan.pushSliceSeconds} s`,
    cores: 'shared',
    rounds: plan.pushRounds,
    slices: registries.map(
      (contestant): Slice => ({
        name: contestant.name,
        pid: contestant.pid,
        run: () => repeat(plan.pushSliceSeconds, (repository) => push(contestant, repository)),
      }),
    ),
  }
}

/** Each client has its own repository. Pushes that have begun at the end are finished and counted. */
async function repeat(seconds: number, push: (repository: string) => Promise<void>): Promise<number> {
  const deadline = performance.now() + seconds * 1000
  let done = 0
  const work = async (_: unknown, index: number) => {
    while (performance.now() < deadline) {
      await push(`bench/client-${index}`)
      done++
    }
  }
  await Promise.all(Array.from({ length: clients }, work))
  return done
}

async function pushSmallImage(contestant: Contestant, repository: string, push: client.BlobPush): Promise<void> {
  const image = await client.pushSmallBlobs(contestant, repository, push)
  await client.pushManifest(contestant, image, crypto.randomUUID(), repository)
}

/** The blobs are those of the image that each registry has. Only the manifest is new. */
async function pushManifest(contestant: Contestant): Promise<void> {
  const tag = crypto.randomUUID()
  await client.pushManifest(contestant, { ...client.usualImage, annotations: { tag } }, tag)
}
