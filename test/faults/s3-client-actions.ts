// Actions of clients that cause requests to S3, each with what the client does when it has to retry.
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { Unavailable } from '../../src/oci/errors.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { ask, finish, openSession, patch, pushBlob, receivedBytes } from '../support/clients/registry-client.ts'
import type { S3Operation } from '../support/s3/s3-operation.ts'
import type { S3World } from '../support/s3-faults/s3-world.ts'

/**
 * `unavailable`: 503 UNAVAILABLE with Retry-After. `over`: 404 BLOB_UPLOAD_UNKNOWN, so that the session has to be created again.
 * `broken`: the answer began well and its connection broke. Anything else that is not `done` is in no rule.
 */
export type Outcome = 'done' | 'unavailable' | 'over' | 'broken' | `not good: ${string}`

/** An action whose preparations have succeeded. */
export interface PreparedAction {
  run(): Promise<Outcome>
  /** The same client, after the fault. `new session`: it had to start again. */
  retry(): Promise<Outcome | 'new session'>
  /** What has to be served afterwards; undefined where nothing has to be. */
  readonly digest: string | undefined
  readonly repository: string
}

export interface ClientAction {
  readonly name: string
  /** The requests to S3 while it runs. */
  readonly operations: readonly S3Operation[]
  prepare(world: S3World, seed: number): Promise<PreparedAction>
}

/** How large things are: what is more than `part` is sent in pieces. */
export interface Sizes {
  readonly part: number
  readonly small: number
}

const patienceMs = 120_000
const waiting = () => ({ signal: AbortSignal.timeout(patienceMs) })

async function outcomeOf(asked: Promise<Response>, good: number): Promise<Outcome> {
  try {
    const answer = await asked
    const text = await answer.text()
    if (answer.status === good) return 'done'
    if (answer.status === 404 && text.includes('"BLOB_UPLOAD_UNKNOWN"')) return 'over'
    const isHonest = answer.status === 503 && text.includes('"UNAVAILABLE"') && answer.headers.has('retry-after')
    return isHonest ? 'unavailable' : `not good: ${answer.status} ${text}`
  } catch (error) {
    return `not good: ${String(error)}`
  }
}

function pushAtOnce(world: S3World, repository: string, bytes: Uint8Array): Promise<Outcome> {
  const path = `/v2/${repository}/blobs/uploads/?digest=${digestOf(bytes)}`
  return outcomeOf(ask(world, 'POST', path, { body: new Uint8Array(bytes), ...waiting() }), 201)
}

function atOnce(name: string, operations: readonly S3Operation[], size: number): ClientAction {
  return {
    name,
    operations,
    async prepare(world, seed) {
      const [repository, bytes] = [`action/${seed}`, generatedBytes(size, seed)]
      const run = () => pushAtOnce(world, repository, bytes)
      return { run, retry: run, digest: digestOf(bytes), repository }
    },
  }
}

/** Chunks, and then a closing request with the last bytes. */
function inChunks(
  name: string,
  operations: readonly S3Operation[],
  sizes: readonly number[],
  last: number,
): ClientAction {
  return {
    name,
    operations,
    async prepare(world, seed) {
      const size = sizes.reduce((sum, one) => sum + one, last)
      const [repository, bytes] = [`action/${seed}`, generatedBytes(size, seed)]
      const session = await openSession(world, repository)
      const close = (from: number) => outcomeOf(finish(world, session, digestOf(bytes), bytes.subarray(from)), 201)
      return {
        digest: digestOf(bytes),
        repository,
        async run() {
          let at = 0
          for (const one of sizes) {
            const outcome = await outcomeOf(patch(world, session, bytes.subarray(at, at + one), at), 202)
            if (outcome !== 'done') return outcome
            at += one
          }
          return close(at)
        },
        async retry() {
          const isOpen = (await ask(world, 'GET', session)).status === 204
          const outcome = isOpen ? await close(await receivedBytes(world, session)) : 'over'
          if (outcome === 'done') return outcome
          const anew = await pushAtOnce(world, repository, bytes)
          return anew === 'done' ? 'new session' : anew
        },
      }
    },
  }
}

/** A connection may break before the client has read how well the answer began. */
function isReset(error: unknown): 'broken' {
  if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET') return 'broken'
  throw error
}

function pull(name: string, size: number, range?: readonly [first: number, last: number]): ClientAction {
  return {
    name,
    operations: ['GetObject'],
    async prepare(world, seed) {
      const [repository, bytes] = [`action/${seed}`, generatedBytes(size, seed)]
      const digest = await pushBlob(world, repository, bytes)
      const headers: Record<string, string> = range === undefined ? {} : { range: `bytes=${range.join('-')}` }
      const wanted = range === undefined ? bytes : bytes.subarray(range[0], range[1] + 1)
      const run = async (): Promise<Outcome> => {
        const path = `/v2/${repository}/blobs/${digest}`
        const answer = await ask(world, 'GET', path, { headers, ...waiting() }).catch(isReset)
        if (answer === 'broken') return answer
        if (answer.status >= 300) return outcomeOf(Promise.resolve(answer), 200)
        // Bun leaves it out where the body is a stream.
        if ((answer.headers.get('content-length') ?? `${wanted.length}`) !== `${wanted.length}`)
          return 'not good: the length'
        const body = await answer.bytes().catch(() => undefined)
        if (body === undefined) return 'broken'
        return Buffer.compare(body, wanted) === 0 ? 'done' : `not good: ${body.length} other bytes`
      }
      return { run, retry: run, digest, repository }
    },
  }
}

/** Asks S3 for nothing at all, so that nothing of it can fail. */
const mount: ClientAction = {
  name: 'mount',
  operations: [],
  async prepare(world, seed) {
    const [repository, from] = [`action/${seed}`, `action/${seed}-from`]
    const digest = await pushBlob(world, from, generatedBytes(1_000, seed))
    const path = `/v2/${repository}/blobs/uploads/?mount=${digest}&from=${from}`
    const run = () => outcomeOf(ask(world, 'POST', path, waiting()), 201)
    return { run, retry: run, digest, repository }
  },
}

/** After a failed collector, other collectors wait for a while. */
function letTimePass({ dataDir }: S3World): void {
  using database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
  database.run('UPDATE trash SET taken_until = 0')
}

async function collect(world: S3World): Promise<Outcome> {
  letTimePass(world)
  try {
    await world.collect(0)
    return 'done'
  } catch (error) {
    return error instanceof Unavailable ? 'unavailable' : `not good: ${String(error)}`
  }
}

/** A request that leaves unused data behind, and the collection that removes it. */
async function sendAndCollect(world: S3World, sent: Promise<Response>, good: number): Promise<Outcome> {
  const outcome = await outcomeOf(sent, good)
  return outcome === 'done' ? collect(world) : outcome
}

const removeBlob: ClientAction = {
  name: 'delete a blob, collect',
  operations: ['DeleteObject'],
  async prepare(world, seed) {
    const repository = `action/${seed}`
    const digest = await pushBlob(world, repository, generatedBytes(1_000, seed))
    const path = `/v2/${repository}/blobs/${digest}`
    const run = () => sendAndCollect(world, ask(world, 'DELETE', path, waiting()), 202)
    return { run, retry: () => collect(world), digest: undefined, repository }
  },
}

function cancel({ part, small }: Sizes): ClientAction {
  return {
    name: 'cancel an upload, collect',
    operations: ['AbortMultipartUpload', 'ListMultipartUploads', 'ListObjects', 'DeleteObject'],
    async prepare(world, seed) {
      const repository = `action/${seed}`
      const session = await openSession(world, repository)
      await patch(world, session, generatedBytes(part, seed), 0)
      await patch(world, session, generatedBytes(small, seed), part)
      const run = () => sendAndCollect(world, ask(world, 'DELETE', session, waiting()), 204)
      return { run, retry: () => collect(world), digest: undefined, repository }
    },
  }
}

const multipart = ['CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload', 'HeadObject'] as const

export function clientActions({ part, small }: Sizes): readonly ClientAction[] {
  const large = 2 * part + small
  // More than is read whole before it is given out.
  const streamed = Math.max(large, 300 * 1024)
  return [
    atOnce('small, one POST', ['PutObject'], small),
    inChunks('small, PATCH and PUT', ['PutObject'], [small], 0),
    atOnce('large, one POST', multipart, large),
    inChunks('large, PATCH and PUT', [...multipart, 'PutObject', 'GetObject'], [large], 0),
    inChunks('chunks', [...multipart, 'PutObject', 'GetObject', 'DeleteObject'], [part + small, small, small], small),
    pull('pull a small one', small),
    pull('pull', streamed),
    pull('pull a range', streamed, [1_000, streamed - 1_000]),
    mount,
    removeBlob,
    cancel({ part, small }),
  ]
}
