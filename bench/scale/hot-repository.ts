// A day of one repository on a real server: pushes, tags, a moving tag, referrers, mounts and deletions. An operation
// must not cost more at the end than at the beginning. See the head of scale.ts.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readCpuSeconds } from '../process-cost.ts'
import { type Registry, sha256 } from '../registry-client.ts'
import type { ScaleServer } from './server.ts'

const key = 'hot-repository-bench-key'
const manifestType = 'application/vnd.oci.image.manifest.v1+json'
const measuredOperations = 150
const atOnce = 4

interface Day {
  readonly registry: Registry
  /** CPU seconds of the server, and of the database if it is another process. */
  readonly cpuSeconds: () => number
  /** Digests of images that no index lists, for deletions. */
  readonly images: string[]
  subject: Descriptor
  number: number
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

type Operation = (day: Day, number: number) => Promise<void>

async function ask(day: Day, method: string, path: string, status: number, body?: string, type?: string) {
  const headers = { ...day.registry.headers, ...(type === undefined ? {} : { 'content-type': type }) }
  const answer = await fetch(new URL(path, day.registry.url), {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  })
  const text = await answer.text()
  if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 200)}`)
  return answer
}

async function pushBlob(day: Day, content: string, repository = 'hot'): Promise<Descriptor> {
  const begun = await ask(day, 'POST', `/v2/${repository}/blobs/uploads/`, 202)
  const location = begun.headers.get('location') ?? ''
  const digest = sha256(content)
  await ask(
    day,
    'PUT',
    `${location}${location.includes('?') ? '&' : '?'}digest=${digest}`,
    201,
    content,
    'application/octet-stream',
  )
  return { mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest, size: content.length }
}

async function putManifest(day: Day, reference: string, content: Record<string, unknown>): Promise<Descriptor> {
  const body = JSON.stringify({ schemaVersion: 2, mediaType: manifestType, ...content })
  const digest = sha256(body)
  await ask(day, 'PUT', `/v2/hot/manifests/${reference === 'digest' ? digest : reference}`, 201, body, manifestType)
  return { mediaType: manifestType, digest, size: body.length }
}

const push: Operation = async (day, number) => {
  const config = await pushBlob(day, `config ${number}`)
  const layer = await pushBlob(day, `layer ${number}`)
  const { digest } = await putManifest(day, `v${number}`, { config, layers: [layer, ...base] })
  day.images.push(digest)
  if (number % 3 === 0) await putManifest(day, 'latest', { config, layers: [layer, ...base] })
}

const operations: Readonly<Record<string, Operation>> = {
  'push (two blobs, a manifest with a tag)': push,
  'push of a referrer': async (day, number) => {
    await putManifest(day, 'digest', {
      config: base[0],
      layers: [],
      subject: day.subject,
      annotations: { number: `${number}` },
    })
  },
  'tag that moves': async (day, number) => {
    await putManifest(day, 'moving', { config: base[0], layers: base, annotations: { number: `${number % 2}` } })
  },
  'mount of a blob': async (day, number) => {
    const { digest } = await pushBlob(day, `other ${number}`, 'other')
    await ask(day, 'POST', `/v2/hot/blobs/uploads/?mount=${digest}&from=other`, 201)
  },
  'deletion of a manifest': async (day) => {
    const digest = day.images.shift()
    if (digest !== undefined) await ask(day, 'DELETE', `/v2/hot/manifests/${digest}`, 202)
  },
  'pull by tag': async (day) => {
    await ask(day, 'GET', '/v2/hot/manifests/moving', 200)
  },
  'page of 100 tags': async (day) => {
    await ask(day, 'GET', '/v2/hot/tags/list?n=100&last=v5', 200)
  },
}

let base: Descriptor[] = []

async function repeat(day: Day, operation: Operation, times: number): Promise<void> {
  let left = times
  const worker = async () => {
    while (left > 0) {
      left -= 1
      day.number += 1
      await operation(day, day.number)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** CPU milliseconds of each operation. */
async function measureOperations(day: Day): Promise<Map<string, number>> {
  const cost = new Map<string, number>()
  for (const [name, operation] of Object.entries(operations)) {
    const before = day.cpuSeconds()
    await repeat(day, operation, measuredOperations)
    cost.set(name, ((day.cpuSeconds() - before) * 1000) / measuredOperations)
  }
  return cost
}

async function startServer(source: string, folder: string, metadataUrl: string | undefined) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const env = {
    ...process.env,
    BERTH_DATA_DIR: folder,
    BERTH_SERVER__PORT: '0',
    BERTH_IDENTITY__ADMIN_API_KEY: key,
    BERTH_LOG__FORMAT: 'json',
    ...(metadataUrl === undefined ? {} : { BERTH_METADATA__URL: metadataUrl }),
  }
  const child = spawn(process.execPath, ['src/main.ts', 'serve'], {
    cwd: source,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (text: Buffer) => {
      const found = /"url":"(http:[^"]+)"/.exec(text.toString())?.[1]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', () => reject(new Error('the server did not start')))
  })
  return { child, url }
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}

/** `source` is the source tree to measure: this one or another version. */
export async function runHotDay(
  folder: string,
  database: ScaleServer | undefined,
  pushes: number,
  source: string,
): Promise<string> {
  let metadataUrl: string | undefined
  if (database !== undefined) {
    const admin = new Bun.SQL({ url: database.urlOf('postgres'), max: 1 })
    await admin.unsafe('DROP DATABASE IF EXISTS hot')
    await admin.unsafe('CREATE DATABASE hot')
    await admin.close()
    metadataUrl = database.urlOf('hot')
  }
  const { child, url } = await startServer(source, join(folder, 'hot'), metadataUrl)
  try {
    const pids = [child.pid ?? 0, ...(database === undefined ? [] : [database.pid])]
    const registry = { url, headers: { 'x-api-key': key } }
    const cpuSeconds = () => pids.map(readCpuSeconds).reduce((sum, one) => sum + one, 0)
    const day: Day = {
      registry,
      cpuSeconds,
      images: [],
      subject: { mediaType: manifestType, digest: '', size: 0 },
      number: 0,
    }
    base = await Promise.all(['base 1', 'base 2', 'base 3'].map((content) => pushBlob(day, content)))
    day.subject = await putManifest(day, 'subject', { config: base[0], layers: base })
    // Compilation and preparation happen once, and are not part of the figures.
    await measureOperations(day)
    const begin = await measureOperations(day)
    await repeat(day, push, pushes)
    if (database !== undefined) await analyze(database)
    // The database then creates new plans for its statements.
    await measureOperations(day)
    const end = await measureOperations(day)
    const rows = [...begin].map(([name, ms]) => `| ${name} | ${ms.toFixed(1)} | ${(end.get(name) ?? 0).toFixed(1)} |`)
    return ['| CPU ms | at the begin | after the pushes |', '| --- | ---: | ---: |', ...rows].join('\n')
  } finally {
    await stop(child)
  }
}

/** Does what autovacuum does within a minute. The servers of this benchmark run without autovacuum. */
async function analyze(database: ScaleServer): Promise<void> {
  const sql = new Bun.SQL({ url: database.urlOf('hot'), max: 1 })
  await sql.unsafe('VACUUM (ANALYZE)')
  await sql.close()
}
