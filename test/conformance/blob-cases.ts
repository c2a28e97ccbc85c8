// Blobs by both algorithms: each way to push one, parts, mounts, cancelled uploads, and digests of other bytes.
import { expect } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { ask, type Case, type Reply, type Repository } from './case.ts'
import { type Algorithm, type Content, contentOf, freshBytes } from './data-set.ts'
import { expectAnswer, expectContent, expectRefusal, locationOf } from './expectations.ts'

/** Returns the answer to the last request: the same push with a wrong digest must be refused. */
type Push = (repository: Repository, blob: Content) => Promise<Reply>

const octets = { 'content-type': 'application/octet-stream' }
const chunkBytes = 1024

async function startUpload(repository: Repository): Promise<string> {
  const reply = await ask(repository, 'POST', 'blobs/uploads/')
  expectAnswer(reply, 202)
  return locationOf(reply, repository)
}

function close(repository: Repository, location: string, digest: string, body = new Uint8Array()): Promise<Reply> {
  return ask(repository, 'PUT', `${location}?digest=${digest}`, { headers: octets, body })
}

/** Where a PATCH says to go on. For nothing at all, the range is `0-0` by custom: docker fails on `0--1`. */
function continuation(reply: Reply, repository: Repository, receivedBytes: number): string {
  expectAnswer(reply, 202, { range: `0-${Math.max(0, receivedBytes - 1)}` })
  return locationOf(reply, repository)
}

/** distribution-spec, "Single POST". */
const pushByPost: Push = (repository, { digest, bytes }) =>
  ask(repository, 'POST', `blobs/uploads/?digest=${digest}`, { headers: octets, body: bytes })

/** distribution-spec, "POST then PUT". */
export const pushByPut: Push = async (repository, { digest, bytes }) =>
  close(repository, await startUpload(repository), digest, bytes)

/** As docker does: one PATCH that states neither its range nor its length, then an empty PUT. */
const pushAsStream: Push = async (repository, { digest, bytes }) => {
  const body = new Blob([bytes]).stream()
  const patched = await ask(repository, 'PATCH', await startUpload(repository), { headers: octets, body })
  return close(repository, continuation(patched, repository, bytes.length), digest)
}

/** Out of order: before each good chunk come the next one and the first one, which are refused. */
function pushInChunks(chunking: { readonly isLastInPut?: true; readonly isOutOfOrder?: true } = {}): Push {
  return async (repository, { digest, bytes }) => {
    let location = await startUpload(repository)
    const send = (first: number) => {
      const body = bytes.slice(first, first + chunkBytes)
      const headers = { ...octets, 'content-range': `${first}-${first + body.length - 1}` }
      const isClosing = chunking.isLastInPut && first + body.length === bytes.length
      const [method, query] = isClosing ? ['PUT', `?digest=${digest}`] : ['PATCH', '']
      return ask(repository, method, location + query, { headers, body })
    }
    for (let start = 0; start < bytes.length; start += chunkBytes) {
      const wrong = [start + chunkBytes, 0].filter((first) => first !== start && first < bytes.length)
      for (const first of chunking.isOutOfOrder ? wrong : []) {
        expectRefusal(await send(first), 416)
        const status = await ask(repository, 'GET', location)
        expectAnswer(status, 204, { range: `0-${Math.max(0, start - 1)}` })
        location = locationOf(status, repository)
      }
      const sent = await send(start)
      if (sent.method === 'PUT') return sent
      location = continuation(sent, repository, Math.min(start + chunkBytes, bytes.length))
    }
    return close(repository, location, digest)
  }
}

/** 201, the digest, and a `Location` that leads to the bytes. */
export async function expectStored(repository: Repository, reply: Reply, blob: Content): Promise<void> {
  expectAnswer(reply, 201, { 'docker-content-digest': blob.digest })
  expectContent(await ask(repository, 'GET', locationOf(reply, repository)), blob)
}

export async function expectBlob(repository: Repository, blob: Content): Promise<void> {
  for (const method of ['HEAD', 'GET']) expectContent(await ask(repository, method, `blobs/${blob.digest}`), blob)
}

export async function expectMissing(repository: Repository, path: string): Promise<void> {
  for (const method of ['HEAD', 'GET']) expectRefusal(await ask(repository, method, path), 404)
}

/** Tags, manifests and blobs are gone with the answer, not some time later. */
export async function expectDeletion(repository: Repository, path: string): Promise<void> {
  expectAnswer(await ask(repository, 'DELETE', path), 202)
  await expectMissing(repository, path)
}

async function checkLife(repository: Repository, blob: Content, push: Push): Promise<void> {
  await expectStored(repository, await push(repository, blob), blob)
  await expectBlob(repository, blob)
  await expectDeletion(repository, `blobs/${blob.digest}`)
}

const pushes: readonly (readonly [string, Push])[] = [
  ['post only', pushByPost],
  ['post+put', pushByPut],
  ['stream', pushAsStream],
  ['chunked multi', pushInChunks()],
  ['chunked multi and put chunk', pushInChunks({ isLastInPut: true })],
  ['chunked out-of-order', pushInChunks({ isOutOfOrder: true })],
  ['chunked out-of-order and put chunk', pushInChunks({ isLastInPut: true, isOutOfOrder: true })],
]

const contents = [
  ['the blob of no bytes', 'empty', new Uint8Array()],
  ['the empty JSON object', 'emptyJSON', new TextEncoder().encode('{}')],
] as const

/** [what, range, first byte, last byte]; the range cannot be satisfied without the two. */
const ranges: readonly (readonly [string, string, number?, number?])[] = [
  ['a part of a blob', '500-1499', 500, 1499],
  ['all of a blob from a byte on', '500-', 500, 2047],
  ['the last bytes of a blob', '-500', 1548, 2047],
  ['a part that goes beyond the end of a blob', '2000-5000', 2000, 2047],
  ['a part that ends before it starts', '500-0'],
  ['a part behind the end of a blob', '5000-10000'],
]

function rangeCase(algorithm: Algorithm, [what, range, first = 0, last]: (typeof ranges)[number]): Case {
  return {
    title: `answers a request for ${what}, by ${algorithm}`,
    official: `${algorithm} blobs/range requests/range ${range}`,
    async check(repository) {
      const blob = contentOf(freshBytes(2048), algorithm)
      expectAnswer(await pushByPut(repository, blob), 201)
      const reply = await ask(repository, 'GET', `blobs/${blob.digest}`, { headers: { range: `bytes=${range}` } })
      if (last === undefined) {
        expectRefusal(reply, 416)
        return expectAnswer(reply, 416, { 'content-range': 'bytes */2048' })
      }
      expectAnswer(reply, 206, {
        'content-range': `bytes ${first}-${last}/2048`,
        'content-length': String(last - first + 1),
        'docker-content-digest': blob.digest,
      })
      expect(digestOf(reply.bytes)).toBe(digestOf(blob.bytes.subarray(first, last + 1)))
    },
  }
}

function mountCase(algorithm: Algorithm, official: string, isSourceNamed: boolean, isThere: boolean): Case {
  return {
    title: `answers a request to mount a blob with ${isThere ? 'the blob' : 'an upload'}, by ${algorithm}`,
    official: `${algorithm} blobs/${official}`,
    async check(repository) {
      const source = { ...repository, name: `${repository.name}-source` }
      const blob = contentOf(freshBytes(512), algorithm)
      if (isThere) await expectStored(source, await pushByPut(source, blob), blob)
      await expectMissing(repository, `blobs/${blob.digest}`)
      const from = isSourceNamed ? `&from=${source.name}` : ''
      const reply = await ask(repository, 'POST', `blobs/uploads/?mount=${blob.digest}${from}`)
      if (!isThere) expectAnswer(reply, 202)
      const stored = isThere ? reply : await close(repository, locationOf(reply, repository), blob.digest, blob.bytes)
      await expectStored(repository, stored, blob)
      await expectDeletion(repository, `blobs/${blob.digest}`)
      // The other repository keeps its own link to the blob.
      if (isThere) await expectBlob(source, blob)
    },
  }
}

function casesOf(algorithm: Algorithm): Case[] {
  const at = (official: string) => `${algorithm} blobs/${official}`
  const lives = pushes.map(([official, push]) => ({
    title: `stores a blob of three chunks, by ${algorithm}`,
    official: at(official),
    check: (repository: Repository) =>
      checkLife(repository, contentOf(freshBytes(3 * chunkBytes - 5), algorithm), push),
  }))
  const single = {
    title: `stores a blob of one chunk, by ${algorithm}`,
    official: at('chunked single'),
    check: (repository: Repository) => checkLife(repository, contentOf(freshBytes(512), algorithm), pushInChunks()),
  }
  const odd = contents.flatMap(([what, official, bytes]) =>
    pushes.slice(0, 4).map(([how, push]) => ({
      title: `stores ${what} (${how}), by ${algorithm}`,
      official: at(official),
      check: (repository: Repository) => checkLife(repository, contentOf(bytes, algorithm), push),
    })),
  )
  const badDigests = pushes.slice(0, 5).map(([official, push]) => ({
    title: `refuses bytes without the digest that the client names, by ${algorithm}`,
    official: at(`bad digest ${official.replace(' multi', '')}`),
    async check(repository: Repository) {
      const { digest } = contentOf(freshBytes(3 * chunkBytes - 5), algorithm)
      expectRefusal(await push(repository, { digest, bytes: freshBytes(3 * chunkBytes - 5) }), 400)
      await expectMissing(repository, `blobs/${digest}`)
    },
  }))
  return [...lives, single, ...odd, ...badDigests]
}

function absenceCases(algorithm: Algorithm): Case[] {
  return [
    {
      title: `has no blob that was never pushed, by ${algorithm}`,
      official: `${algorithm} blobs/get-missing`,
      check: (repository) => expectMissing(repository, `blobs/${contentOf(freshBytes(8), algorithm).digest}`),
    },
    {
      title: `removes an upload that is cancelled, and has no blob, by ${algorithm}`,
      official: `${algorithm} blobs/post cancel`,
      async check(repository) {
        const blob = `blobs/${contentOf(freshBytes(8), algorithm).digest}`
        const location = await startUpload(repository)
        expectAnswer(await ask(repository, 'DELETE', location), 204)
        expectRefusal(await ask(repository, 'GET', location), 404)
        await expectMissing(repository, blob)
        expectRefusal(await ask(repository, 'DELETE', blob), 404)
      },
    },
  ]
}

export const blobCases: readonly Case[] = (['sha256', 'sha512'] as const).flatMap((algorithm) => [
  ...absenceCases(algorithm),
  ...casesOf(algorithm),
  ...ranges.map((range) => rangeCase(algorithm, range)),
  mountCase(algorithm, 'mount', true, true),
  mountCase(algorithm, 'mount anonymous', false, true),
  mountCase(algorithm, 'mount missing', true, false),
])
