// The memory of each registry: idle, and under many connections and uploads.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createBlobSource } from './blob-source.ts'
import { type Run, startEach } from './comparison.ts'
import type { Contestant } from './contestants.ts'
import { applyCores } from './cores.ts'
import type { Line } from './figures.ts'
import { chooseLoadGenerator } from './load-generator.ts'
import { listProcessTree, readPeakResidentBytes, readResidentBytes } from './process-cost.ts'
import * as client from './registry-client.ts'

const mebibyte = 2 ** 20
const connections = 256
const uploads = 32
const uploadBytes = 16 * mebibyte
const idleMs = 2000
const loadSeconds = 3

export const idleTitle = 'idle memory'
export const idleOfProcessTitle = 'idle memory per process'
export const peakTitle = `peak memory, ${connections} connections and ${uploads} uploads`

/** Memory is the resident memory of all processes of the server. Pages that they share count for each of them. */
export async function measureMemory(run: Run): Promise<Line[]> {
  applyCores(run.cores, 'shared', [])
  const folder = join(run.folder, 'memory-sources')
  mkdirSync(folder)
  const sources = Array.from({ length: uploads }, (_, index) => {
    const own = join(folder, `${index}`)
    mkdirSync(own)
    return createBlobSource(own, uploadBytes)
  })
  const blobs = sources.map((source) => ({ path: source.path, digest: source.stamp() }))
  const idle = new Map<string, number>()
  const idleOfProcess = new Map<string, number>()
  const peak = new Map<string, number>()
  await startEach(run, 'memory', async (contestant) => {
    const { name, pid } = contestant
    await Bun.sleep(idleMs)
    const idleBytes = readResidentBytes(pid)
    idle.set(name, idleBytes / mebibyte)
    idleOfProcess.set(name, idleBytes / mebibyte / listProcessTree(pid).length)
    await load(run, contestant, blobs)
    peak.set(name, readPeakResidentBytes(pid) / mebibyte)
  })
  return [
    { title: idleTitle, figure: 'MiB', values: idle },
    { title: idleOfProcessTitle, figure: 'MiB', values: idleOfProcess },
    { title: peakTitle, figure: 'MiB', values: peak },
  ]
}

async function load(
  run: Run,
  contestant: Contestant,
  blobs: readonly { readonly path: string; readonly digest: string }[],
): Promise<void> {
  await client.pushImage(contestant)
  const headers = { ...contestant.headers, Accept: client.manifestType }
  const url = client.manifestUrl(contestant, client.tag)
  await Promise.all([
    chooseLoadGenerator(run.folder).run({ url, headers, seconds: loadSeconds, connections }),
    ...blobs.map(({ path, digest }) => client.uploadByPut(contestant, path, digest)),
  ])
}
