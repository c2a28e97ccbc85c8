// Large blobs: one download or upload at a time, and eight uploads at once.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type BlobSource, createBlobSource } from '../blob-source.ts'
import { type Contestant, startBareFile, startBareUpload } from '../contestants.ts'
import { curl } from '../curl.ts'
import * as client from '../registry-client.ts'
import type { Slice } from '../rounds.ts'
import { warmMemory } from '../warm-memory.ts'
import { bareFileName, bareUploadName, type Field, type Row, type RowGroup } from './row.ts'

const mebibyte = 2 ** 20
const uploadsAtOnce = 8

export const downloadRows: RowGroup = {
  name: 'downloads',
  isQuick: true,
  withSyncingPeers: false,
  async prepare({ plan, folder, registries, enter }) {
    const source = createBlobSource(folder, plan.largeBlobBytes)
    const digest = source.stamp()
    for (const registry of registries) await client.uploadByPut(registry, source.path, digest)
    const bareFile = await enter(startBareFile(bareFileName, source.path))
    const { downloadsPerSlice: times } = plan
    const slices = [...registries, bareFile].map(
      (contestant): Slice => ({
        name: contestant.name,
        pid: contestant.pid,
        async run() {
          const url = client.blobUrl(contestant, digest)
          for (let time = 0; time < times; time++) await curl.download(url, contestant.headers, source.sizeBytes)
          return times * source.sizeBytes
        },
      }),
    )
    const detail = `curl, ${times} downloads one after the other`
    const size = `${plan.largeBlobBytes / mebibyte} MiB`
    const rest = { figures: ['CPU s per GiB'], detail, cores: 'apart', rounds: plan.downloadRounds } as const
    return [{ title: `blob GET of ${size}`, ...rest, slices }]
  },
}

type Form = 'PUT' | 'PATCH'

const senders = { PUT: client.uploadByPut, PATCH: client.uploadByPatch } as const

/** The content of each upload is new to the registry. */
export function uploadRow(form: Form): RowGroup {
  return {
    name: `upload by ${form}`,
    isQuick: form === 'PUT',
    withSyncingPeers: false,
    async prepare(field) {
      const { largeBlobBytes, uploadRounds } = field.plan
      const source = createBlobSource(field.folder, largeBlobBytes)
      return [
        {
          title: `upload of ${largeBlobBytes / mebibyte} MiB by ${form}`,
          figures: ['CPU s per GiB'],
          detail: form === 'PUT' ? 'POST, PUT with the content' : 'POST, PATCH with the content, PUT',
          cores: 'apart',
          rounds: uploadRounds,
          slices: await uploadSlices(field, [source], form),
        },
      ]
    },
  }
}

export const uploadsAtOnceRow: RowGroup = {
  name: 'uploads at once',
  isQuick: false,
  withSyncingPeers: true,
  async prepare(field): Promise<readonly Row[]> {
    const sources = Array.from({ length: uploadsAtOnce }, (_, index) => {
      const folder = join(field.folder, `source-${index}`)
      mkdirSync(folder)
      return createBlobSource(folder, field.plan.largeBlobBytes / uploadsAtOnce)
    })
    return [
      {
        title: `${uploadsAtOnce} uploads of ${field.plan.largeBlobBytes / uploadsAtOnce / mebibyte} MiB at once`,
        figures: ['MiB per second', 'CPU s per GiB'],
        detail: 'POST, PUT with the content',
        cores: 'shared',
        rounds: field.plan.uploadRounds,
        slices: await uploadSlices(field, sources, 'PUT'),
      },
    ]
  },
}

interface Target {
  readonly contestant: Contestant
  send(path: string, digest: string, sizeBytes: number): Promise<void>
}

async function uploadSlices(field: Field, sources: readonly BlobSource[], form: Form): Promise<Slice[]> {
  const { folder, registries, enter } = field
  const bareFolder = join(folder, 'bare-upload')
  mkdirSync(bareFolder)
  const bare = await enter(startBareUpload(bareUploadName, bareFolder))
  const targets: Target[] = registries.map((contestant) => ({
    contestant,
    async send(path, digest, sizeBytes) {
      await senders[form](contestant, path, digest)
      await client.expectBlob(contestant, digest, sizeBytes)
    },
  }))
  targets.push({
    contestant: bare,
    send: async (path, digest) => void (await curl.upload('PUT', `${bare.url}/?digest=${digest}`, {}, path)),
  })
  const sizeBytes = sources.reduce((sum, source) => sum + source.sizeBytes, 0)
  return targets.map(({ contestant, send }): Slice => {
    let digests: readonly string[] = []
    return {
      name: contestant.name,
      pid: contestant.pid,
      prepare() {
        digests = sources.map((source) => source.stamp())
        // The bare loop keeps no files, so that they do not fill the disk. It frees none during the measurement.
        for (const file of readdirSync(bareFolder)) rmSync(join(bareFolder, file))
        warmMemory(folder, sizeBytes)
      },
      async run() {
        const sending = sources.map((source, index) => send(source.path, digests[index] ?? '', source.sizeBytes))
        await Promise.all(sending)
        return sizeBytes
      },
    }
  })
}
