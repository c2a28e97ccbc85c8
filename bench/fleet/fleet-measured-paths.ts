// The measured paths, and their slices.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from '../bench-options.ts'
import { type BlobSource, createBlobSource } from '../blob-source.ts'
import type { Contestant } from '../contestants.ts'
import { curl } from '../curl.ts'
import type { LoadGenerator } from '../load-generator.ts'
import * as client from '../registry-client.ts'
import type { Slice } from '../rounds.ts'

export interface FleetBench {
  readonly plan: Plan
  readonly folder: string
  readonly load: LoadGenerator
  readonly contestants: readonly Contestant[]
}

export interface Phase {
  readonly title: string
  readonly unit: 'requests' | 'bytes'
  /** Describes the load. */
  readonly detail: string
  readonly isManifest: boolean
  readonly rounds: number
  /** One for each contestant. */
  readonly slices: readonly Slice[]
}

const smallBlobBytes = 64 * 1024

/** Many requests over keep-alive connections, for the given seconds. */
export async function smallAnswerPhases({ plan, folder, load, contestants }: FleetBench): Promise<Phase[]> {
  const [manifest = ''] = await Promise.all(contestants.map(async (one) => (await client.pushImage(one)).digest))
  const [source] = sourcesOf(folder, 1, smallBlobBytes)
  const blob = source?.stamp() ?? ''
  for (const contestant of contestants) await client.uploadByPut(contestant, source?.path ?? '', blob)

  const phase = (title: string, urlOf: (contestant: Contestant) => string, method: 'GET' | 'HEAD' = 'GET'): Phase => ({
    title,
    unit: 'requests',
    detail: `${plan.connections} keep-alive connections, slices of ${plan.fleetSliceSeconds} s`,
    isManifest: title.startsWith('manifest'),
    rounds: plan.fleetRounds,
    slices: contestants.map((contestant) =>
      sliceOf(contestant, () =>
        load.run({
          method,
          url: urlOf(contestant),
          headers: { ...contestant.headers, Accept: client.manifestType },
          seconds: plan.fleetSliceSeconds,
          connections: plan.connections,
        }),
      ),
    ),
  })
  return [
    phase('manifest GET by tag', (contestant) => client.manifestUrl(contestant, client.tag)),
    phase('manifest GET by digest', (contestant) => client.manifestUrl(contestant, manifest)),
    phase('blob HEAD', (contestant) => client.blobUrl(contestant, blob), 'HEAD'),
    phase('blob GET of 64 KiB', (contestant) => client.blobUrl(contestant, blob)),
  ]
}

/** A few simultaneous clients, each with its own bodies. */
export async function bigBlobPhases({ plan, folder, contestants }: FleetBench): Promise<Phase[]> {
  const { fleetBlobSizeBytes: sizeBytes, fleetBlobClients: clients, fleetDownloads } = plan
  const sources = sourcesOf(folder, clients, sizeBytes)
  const shown = `${sizeBytes / 2 ** 20} MiB`
  const first = stampAll(sources.slice(0, 1))
  for (const contestant of contestants) await uploadAll(contestant, first, sizeBytes)
  const url = (contestant: Contestant) => client.blobUrl(contestant, first[0]?.digest ?? '')

  const downloadAll = async (contestant: Contestant) => {
    const each = sources.map(async () => {
      for (let time = 0; time < fleetDownloads; time++)
        await curl.download(url(contestant), contestant.headers, sizeBytes)
    })
    await Promise.all(each)
    return clients * fleetDownloads * sizeBytes
  }
  const downloads = contestants.map((contestant) => sliceOf(contestant, () => downloadAll(contestant)))
  const uploads = contestants.map((contestant): Slice => {
    let fresh: readonly StampedBlob[] = []
    const prepare = () => {
      fresh = stampAll(sources)
    }
    return { ...sliceOf(contestant, () => uploadAll(contestant, fresh, sizeBytes)), prepare }
  })
  const rest = { unit: 'bytes', isManifest: false } as const
  const each = `${clients} clients at once`
  return [
    {
      ...rest,
      title: `blob GET of ${shown}`,
      detail: `${each}, ${fleetDownloads} downloads each`,
      rounds: plan.fleetRounds,
      slices: downloads,
    },
    {
      ...rest,
      title: `blob upload of ${shown}`,
      detail: `POST, PATCH and PUT, ${each}, one each`,
      rounds: plan.fleetUploadRounds,
      slices: uploads,
    },
  ]
}

interface StampedBlob {
  readonly path: string
  readonly digest: string
}

function stampAll(sources: readonly BlobSource[]): StampedBlob[] {
  return sources.map(({ path, stamp }) => ({ path, digest: stamp() }))
}

async function uploadAll(contestant: Contestant, blobs: readonly StampedBlob[], sizeBytes: number): Promise<number> {
  await Promise.all(
    blobs.map(async ({ path, digest }) => {
      await client.uploadByPatch(contestant, path, digest)
      await client.expectBlob(contestant, digest, sizeBytes)
    }),
  )
  return blobs.length * sizeBytes
}

function sliceOf({ name, pid, helperPid }: Contestant, run: () => Promise<number>): Slice {
  return { name, pid, helperPid, run }
}

function sourcesOf(folder: string, count: number, sizeBytes: number): BlobSource[] {
  return Array.from({ length: count }, (_, index) => {
    const place = join(folder, `source-${sizeBytes}-${index}`)
    mkdirSync(place)
    return createBlobSource(place, sizeBytes)
  })
}
