// The three hot paths: their contestants, their slices, and their warm-up.
import { rmSync } from 'node:fs'
import type { BlobSource } from './blob-source.ts'
import { type Contestant, startConstant } from './contestants.ts'
import type { Field } from './contestants-of-run.ts'
import { curl } from './curl.ts'
import type { LoadGenerator } from './manifest-load.ts'
import * as client from './registry-client.ts'
import { measureRounds, type Samples, type Slice } from './rounds.ts'
import type { ConstantAnswer } from './servers/constant.ts'
import { warmMemory } from './warm-memory.ts'

/** Headers that Bun sets by itself, and those that belong to the connection. */
const ownHeaders = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])

export async function measureManifests(field: Field, load: LoadGenerator): Promise<Samples> {
  const { plan, berth, dockerRegistry, dockerRegistryWithPassword } = field
  const { digest } = await client.pushImage(berth)
  if (dockerRegistry !== undefined) await client.pushImage(dockerRegistry)
  const answer = await readAnswer(berth)
  const enterConstant = async (name: string): Promise<Contestant> => {
    const contestant = await field.enter(startConstant(field.folder, name, answer))
    // All contestants get the same request. These two ignore it.
    return { ...contestant, headers: berth.headers }
  }
  const constant = await enterConstant('constant')
  const staticRoute = await enterConstant('constant (static route)')
  // The static route is not compared, because Bun adds an ETag to it.
  await expectSameAnswer(constant, answer)

  const slice = (name: string, contestant: Contestant, reference: string): Slice => ({
    name,
    pid: contestant.pid,
    run: () =>
      load.run({
        url: client.manifestUrl(contestant, reference),
        headers: { ...contestant.headers, Accept: client.manifestType },
        seconds: plan.manifestSliceSeconds,
        connections: plan.connections,
      }),
  })
  const slices = [
    slice('berth by tag', berth, client.tag),
    slice('constant by tag', constant, client.tag),
    slice('berth by digest', berth, digest),
    slice('constant by digest', constant, digest),
    slice('constant (static route)', staticRoute, client.tag),
  ]
  if (dockerRegistry !== undefined) {
    slices.push(slice('docker-registry by tag', dockerRegistry, client.tag))
    slices.push(slice('docker-registry by digest', dockerRegistry, digest))
  }
  if (dockerRegistryWithPassword !== undefined) {
    slices.push(slice('docker-registry with password, by tag', dockerRegistryWithPassword, client.tag))
  }
  // One round warms compilers and caches, and does not count.
  for (const warmUp of slices) await warmUp.run()
  return measureRounds(slices, plan.manifestRounds)
}

async function readAnswer(contestant: Contestant): Promise<ConstantAnswer> {
  const url = client.manifestUrl(contestant, client.tag)
  const answer = await fetch(url, { headers: { ...contestant.headers, Accept: client.manifestType } })
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}: ${await answer.text()}`)
  const headers = [...answer.headers].filter(([name]) => !ownHeaders.has(name))
  return { headers: Object.fromEntries(headers), body: await answer.text() }
}

async function expectSameAnswer(contestant: Contestant, expected: ConstantAnswer): Promise<void> {
  const actual = await readAnswer(contestant)
  if (!Bun.deepEquals(actual, expected)) throw new Error(`${contestant.name} does not answer what Berth answers`)
}

export async function measureDownloads(field: Field, digest: string, sizeBytes: number): Promise<Samples> {
  const { plan, berth, bareFile, dockerRegistry } = field
  const slice = (contestant: Contestant): Slice => {
    const download = () => curl.download(client.blobUrl(contestant, digest), contestant.headers, sizeBytes)
    return {
      name: contestant.name,
      pid: contestant.pid,
      async run() {
        for (let time = 0; time < plan.downloadsPerSlice; time++) await download()
        return plan.downloadsPerSlice * sizeBytes
      },
    }
  }
  const slices = [berth, bareFile, ...(dockerRegistry === undefined ? [] : [dockerRegistry])].map(slice)
  for (const warmUp of slices) await warmUp.run()
  return measureRounds(slices, plan.downloadRounds)
}

/** Uploads the same blob to all. This warms up the uploads, and the downloads read this blob. */
export async function uploadFirstBlob(field: Field, source: BlobSource): Promise<string> {
  const digest = source.stamp()
  for (const { send } of uploadersOf(field)) await send(source.path, digest)
  return digest
}

export async function measureUploads(field: Field, source: BlobSource): Promise<Samples> {
  const slices = uploadersOf(field).map(({ name, contestant, send }): Slice => {
    let digest = ''
    return {
      name,
      pid: contestant.pid,
      prepare() {
        digest = source.stamp()
        // The bare loop writes a new file, as the others do, and frees no file during the measurement.
        rmSync(field.bareUploadPath, { force: true })
        warmMemory(field.folder, source.sizeBytes)
      },
      async run() {
        await send(source.path, digest)
        if (contestant !== field.bareUpload) await client.expectBlob(contestant, digest, source.sizeBytes)
        return source.sizeBytes
      },
    }
  })
  return measureRounds(slices, field.plan.uploadRounds)
}

interface Uploader {
  readonly name: string
  readonly contestant: Contestant
  send(path: string, digest: string): Promise<unknown>
}

function uploadersOf({ plan, berth, bareUpload, dockerRegistry }: Field): Uploader[] {
  const byPut = (contestant: Contestant): Uploader => ({
    name: contestant.name,
    contestant,
    send: (path, digest) => client.uploadByPut(contestant, path, digest),
  })
  const bare: Uploader = {
    name: bareUpload.name,
    contestant: bareUpload,
    send: (path, digest) => curl.upload('PUT', `${bareUpload.url}/?digest=${digest}`, bareUpload.headers, path),
  }
  const byPatch: Uploader = {
    name: `${berth.name} by PATCH`,
    contestant: berth,
    send: (path, digest) => client.uploadByPatch(berth, path, digest),
  }
  return [
    byPut(berth),
    bare,
    ...(plan.uploadByPatchToo ? [byPatch] : []),
    ...(dockerRegistry === undefined ? [] : [byPut(dockerRegistry)]),
  ]
}
