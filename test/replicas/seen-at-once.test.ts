// What one replica has acknowledged, the other shows to the very next request: written here and read there, both ways.
import { expect } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  jsonOf,
  manifestOfBlobs,
  openSession,
  patch,
  pushBlob,
  putManifest,
  receivedBytes,
  type Target,
} from '../support/clients/registry-client.ts'
import { startReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'

/** In each direction. CI makes 200 (MATRIX=all). */
const rounds = process.env['MATRIX'] === 'all' ? 200 : 16
const lanes = 4
const encode = (text: string) => new TextEncoder().encode(text)
let looks = 0

const replicas = useRunning(() => startReplicas(), sharedStoresNeed)

/** A writer at one replica and a reader at another, in their own repository. */
class Pair {
  readonly #writer: Target
  readonly #reader: Target
  readonly #repository: string

  constructor(writer: Target, reader: Target, repository: string) {
    this.#writer = writer
    this.#reader = reader
    this.#repository = repository
  }

  async #status(method: string, path: string): Promise<number> {
    looks += 1
    const answer = await ask(this.#reader, method, `/v2/${this.#repository}/${path}`)
    await answer.arrayBuffer()
    return answer.status
  }

  /** The digest of the bytes that are served. */
  async #manifest(reference: string): Promise<string> {
    looks += 1
    const asked = ask(this.#reader, 'GET', `/v2/${this.#repository}/manifests/${reference}`)
    return digestOf(await (await expectStatus(200, asked)).bytes())
  }

  async #list(): Promise<{ tags: string[]; isInCatalog: boolean }> {
    looks += 2
    const { tags } = await jsonOf<{ tags: string[] }>(ask(this.#reader, 'GET', `/v2/${this.#repository}/tags/list`))
    const { repositories } = await jsonOf<{ repositories: string[] }>(ask(this.#reader, 'GET', '/v2/_catalog?n=1000'))
    return { tags, isInCatalog: repositories.includes(this.#repository) }
  }

  async #referrers(subject: string): Promise<string[]> {
    looks += 1
    const asked = ask(this.#reader, 'GET', `/v2/${this.#repository}/referrers/${subject}`)
    return (await jsonOf<{ manifests: { digest: string }[] }>(asked)).manifests.map(({ digest }) => digest)
  }

  #put(reference: string, bytes: Uint8Array): Promise<Response> {
    return expectStatus(201, putManifest(this.#writer, this.#repository, reference, bytes))
  }

  #remove(path: string): Promise<Response> {
    return expectStatus(202, ask(this.#writer, 'DELETE', `/v2/${this.#repository}/${path}`))
  }

  async round(serial: number): Promise<void> {
    const layer = encode(`${this.#repository} ${serial}`)
    const blob = await pushBlob(this.#writer, this.#repository, layer)
    expect(await this.#status('HEAD', `blobs/${blob}`)).toBe(200)
    for (const target of [this.#reader, this.#writer]) {
      expect(await checkBlob(target, this.#repository, blob)).toBe('whole')
    }
    looks += 1
    await this.#session(layer)
    await this.#image(layer)
    await this.#remove(`blobs/${blob}`)
    expect(await this.#status('HEAD', `blobs/${blob}`)).toBe(404)
    // Both have served it, and may still hold its bytes in memory.
    for (const target of [this.#writer, this.#reader]) {
      expect(await checkBlob(target, this.#repository, blob)).toBe('status 404')
    }
  }

  async #session(bytes: Uint8Array): Promise<void> {
    const session = await openSession(this.#writer, this.#repository)
    expect(await receivedBytes(this.#reader, session)).toBeLessThanOrEqual(1)
    await expectStatus(202, patch(this.#writer, session, bytes, 0))
    expect(await receivedBytes(this.#reader, session)).toBe(bytes.length)
    await expectStatus(204, ask(this.#writer, 'DELETE', session))
    expect((await ask(this.#reader, 'GET', session)).status).toBe(404)
    looks += 3
  }

  async #image(layer: Uint8Array): Promise<void> {
    const [first, second] = [manifestOfBlobs(layer, [layer], 'first'), manifestOfBlobs(layer, [layer], 'second')]
    const [one, two] = [digestOf(first), digestOf(second)]
    const descriptor = { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: one, size: first.length }
    const plain: object = JSON.parse(new TextDecoder().decode(first))
    const referrer = encode(JSON.stringify({ ...plain, subject: descriptor }))

    await this.#put('moving', first)
    expect([await this.#manifest('moving'), await this.#manifest(one)]).toEqual([one, one])
    expect(await this.#status('HEAD', `manifests/${one}`)).toBe(200)
    expect(await this.#list()).toEqual({ tags: ['moving'], isInCatalog: true })
    await this.#put(digestOf(referrer), referrer)
    expect(await this.#referrers(one)).toEqual([digestOf(referrer)])
    await this.#put('moving', second)
    expect([await this.#manifest('moving'), await this.#manifest(one)]).toEqual([two, one])
    await this.#remove('manifests/moving')
    expect(await this.#status('GET', 'manifests/moving')).toBe(404)
    expect(await this.#list()).toEqual({ tags: [], isInCatalog: true })
    await this.#remove(`manifests/${digestOf(referrer)}`)
    expect(await this.#referrers(one)).toEqual([])
    for (const digest of [one, two]) {
      await this.#remove(`manifests/${digest}`)
      expect(await this.#status('HEAD', `manifests/${digest}`)).toBe(404)
    }
    expect(await this.#list()).toEqual({ tags: [], isInCatalog: false })
  }
}

testNeeding(
  sharedStoresNeed,
  'blobs, uploads, manifests, tags, referrers, the catalog: as they come, as they move, and as they go',
  async () => {
    const { a, b } = replicas
    const lane = async (which: number) => {
      const pairs = [new Pair(a, b, `seen/${which}/a-to-b`), new Pair(b, a, `seen/${which}/b-to-a`)]
      for (let serial = which; serial < rounds; serial += lanes) {
        for (const pair of pairs) await pair.round(serial)
      }
    }
    await Promise.all(Array.from({ length: lanes }, (_, which) => lane(which)))
    expect(looks).toBeGreaterThan(rounds * 2 * 20)
  },
  60_000 + rounds * 300,
)

/** What one replica answers about the account after each change at the other. */
async function switchAccount(writer: Target, reader: Target): Promise<string[]> {
  const seen: string[] = []
  for (const verb of ['disable', 'enable'] as const) {
    await expectStatus(200, ask(writer, 'POST', `/api/2023-12-28/${verb}`))
    const answer = await ask(reader, 'GET', '/v2/_catalog')
    await answer.arrayBuffer()
    looks += 1
    seen.push(`after ${verb} ${answer.status}`)
  }
  return seen
}

testNeeding(sharedStoresNeed, 'an account that is disabled, and enabled again', async () => {
  const { a, b } = replicas
  const seen = new Set<string>()
  for (let round = 0; round < rounds; round += 1) {
    for (const each of [...(await switchAccount(a, b)), ...(await switchAccount(b, a))]) seen.add(each)
  }
  expect([...seen]).toEqual(['after disable 403', 'after enable 200'])
})

testNeeding(sharedStoresNeed, 'control: a reader that says again what it said before is noticed', async () => {
  const { a, b } = replicas
  const said = new Map<string, { readonly status: number; readonly body: ArrayBuffer }>()
  const forgetful = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch({ method, url, headers }) {
      const { pathname, search } = new URL(url)
      const key = `${method} ${pathname}${search}`
      if (!said.has(key)) {
        const answer = await fetch(b.url + pathname + search, { method, headers })
        said.set(key, { status: answer.status, body: await answer.arrayBuffer() })
      }
      const { status = 500, body } = said.get(key) ?? {}
      return new Response(body, { status })
    },
  })
  try {
    const reader = { ...b, url: forgetful.url.origin }
    await expect(new Pair(a, reader, 'seen/stale').round(0)).rejects.toThrow('expect')
    await ask(reader, 'GET', '/v2/_catalog')
    expect(await switchAccount(a, reader)).toEqual(['after disable 200', 'after enable 200'])
  } finally {
    await forgetful.stop(true)
  }
})
