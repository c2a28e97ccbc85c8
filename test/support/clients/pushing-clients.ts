// Clients that push small images without end, and a record of everything that the registry has acknowledged to them, so that
// a test can check after a crash that nothing of it is lost.
import type { Digest } from '../../../src/oci/digest.ts'
import { digestOf, generatedBytes, seededRandom } from '../basics/generated-bytes.ts'
import { authorization, checkBlob, manifestOfBlobs, type Target } from './registry-client.ts'

interface Options {
  /** How often a request is sent before the client gives up. With 1, each client moves one tag of its own. */
  readonly triesMax?: number
  readonly layerBytesMax?: number
  readonly seed?: number
}

export interface PushFigures {
  images: number
  /** Requests that were answered as they should be. */
  requests: number
  /** Connections that broke, and answers of 5xx: a client repeats such a request. */
  retries: number
  /** Uploads that the registry would not continue (416, 404): a client starts such an upload again. */
  restartedUploads: number
  /** Every other refusal, and requests that failed in every try. */
  readonly failures: string[]
}

interface TagHistory {
  acknowledged: Digest | undefined
  /** Sent, but never answered: the tag may point to any of these as well. */
  unanswered: Digest[]
}

const pauseMs = 100

class Retryable extends Error {}

export class PushingClients {
  readonly figures: PushFigures = { images: 0, requests: 0, retries: 0, restartedUploads: 0, failures: [] }
  readonly #triesMax: number
  readonly #layerBytesMax: number
  readonly #random: () => number
  readonly #blobs = new Map<string, { repository: string; digest: Digest }>()
  readonly #manifests = new Map<string, { repository: string; bytes: Uint8Array }>()
  readonly #tags = new Map<string, TagHistory>()
  #serial = 0

  constructor({ triesMax = 60, layerBytesMax = 40_000, seed = 1 }: Options = {}) {
    this.#triesMax = triesMax
    this.#layerBytesMax = layerBytesMax
    this.#random = seededRandom(seed)
  }

  get size(): { blobs: number; manifests: number; tags: number } {
    return { blobs: this.#blobs.size, manifests: this.#manifests.size, tags: this.#tags.size }
  }

  /** The blobs that were acknowledged. */
  get digests(): Digest[] {
    return [...this.#blobs.values()].map(({ digest }) => digest)
  }

  async pushUntil(target: Target, client: number, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const isPushed = await this.#pushImage(target, client)
      if (!isPushed) await Bun.sleep(1)
    }
  }

  async #pushImage(target: Target, client: number): Promise<boolean> {
    this.#serial += 1
    const serial = this.#serial
    const repository = `load/${client % 2}`
    // A client that repeats requests could meet its own late request at a tag that it moves.
    const tag = this.#triesMax === 1 ? `tag-${client}` : `tag-${serial}`
    const config = generatedBytes(40, serial)
    // Every fifth layer is one that others push too, so that duplicates and their trash occur.
    const size = 1 + Math.floor(this.#random() * this.#layerBytesMax)
    const layer = serial % 5 === 0 ? generatedBytes(1_000, 5) : generatedBytes(size, serial + 1_000_000)
    for (const blob of [config, layer]) {
      if (!(await this.#retrying(() => this.#pushBlob(target, repository, blob, serial % 3)))) return false
      const digest = digestOf(blob)
      this.#blobs.set(`${repository}@${digest}`, { repository, digest })
    }
    const bytes = manifestOfBlobs(config, [layer], String(serial))
    const digest = digestOf(bytes)
    const history = this.#tags.get(`${repository}:${tag}`) ?? { acknowledged: undefined, unanswered: [] }
    this.#tags.set(`${repository}:${tag}`, history)
    history.unanswered.push(digest)
    const path = `/v2/${repository}/manifests/${tag}`
    const init = {
      headers: { 'content-type': 'application/vnd.oci.image.manifest.v1+json' },
      body: new Uint8Array(bytes),
    }
    if (!(await this.#retrying(() => this.#ask(target, 201, 'PUT', path, init)))) return false
    this.#manifests.set(`${repository}@${digest}`, { repository, bytes })
    history.acknowledged = digest
    history.unanswered = []
    this.figures.images += 1
    return true
  }

  /** In one request, with a PATCH, or with two of them. */
  async #pushBlob(target: Target, repository: string, bytes: Uint8Array<ArrayBuffer>, chunks: number): Promise<void> {
    const digest = digestOf(bytes)
    const uploads = `/v2/${repository}/blobs/uploads/`
    if (chunks === 0) {
      await this.#ask(target, 201, 'POST', `${uploads}?digest=${digest}`, { body: bytes })
      return
    }
    const session = (await this.#ask(target, 202, 'POST', uploads)).headers.get('location') ?? ''
    const step = Math.ceil(bytes.length / chunks)
    for (let at = 0; at < bytes.length; at += step) {
      await this.#ask(target, 202, 'PATCH', session, { body: bytes.subarray(at, at + step) })
    }
    await this.#ask(target, 201, 'PUT', `${session}?digest=${digest}`)
  }

  async #ask(target: Target, status: number, method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization, ...init.headers }
    let answer: Response
    let text: string
    try {
      // Each request has its own connection, because Bun repeats requests on connections that were used before.
      answer = await fetch(target.url + path, { ...init, method, headers, keepalive: false })
      text = await answer.text()
    } catch (error) {
      throw new Retryable(`${method}: ${error instanceof Error ? error.message : String(error)}`)
    }
    if (answer.status >= 500) throw new Retryable(`${method}: ${answer.status}`)
    if (this.#triesMax > 1 && text.includes('BLOB_UPLOAD_')) {
      this.figures.restartedUploads += 1
      throw new Retryable(`${method}: ${text}`)
    }
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    this.figures.requests += 1
    return answer
  }

  /** A broken connection is no failure of a client that sends each request once. */
  async #retrying(act: () => Promise<unknown>): Promise<boolean> {
    for (let tries = 1; ; tries += 1) {
      try {
        await act()
        return true
      } catch (error) {
        const isRetryable = error instanceof Retryable
        const isBroken = isRetryable && !/: 5\d\d$/.test(error.message)
        if (!isRetryable || tries === this.#triesMax) {
          if (!isBroken || this.#triesMax > 1) this.figures.failures.push(String(error))
          return false
        }
        this.figures.retries += 1
        await Bun.sleep(pauseMs)
      }
    }
  }

  /** Requests everything that was acknowledged; gives what is lost or changed. */
  async findLosses(target: Target): Promise<string[]> {
    const losses: string[] = []
    for (const { repository, digest } of this.#blobs.values()) {
      const state = await checkBlob(target, repository, digest)
      if (state !== 'whole') losses.push(`blob ${repository}@${digest}: ${state}`)
    }
    for (const [name, { repository, bytes }] of this.#manifests) {
      const answer = await this.#find(target, 'GET', repository, digestOf(bytes))
      const got = Buffer.from(await answer.arrayBuffer())
      if (answer.status !== 200 || !got.equals(bytes)) losses.push(`manifest ${name}: status ${answer.status}`)
    }
    for (const [name, { acknowledged, unanswered }] of this.#tags) {
      const [repository = '', tag = ''] = name.split(':')
      const answer = await this.#find(target, 'HEAD', repository, tag)
      const digest = answer.headers.get('docker-content-digest')
      const allowed: readonly (string | null)[] = [acknowledged ?? null, ...unanswered]
      if (!allowed.includes(digest)) losses.push(`tag ${name}: points to ${digest}`)
    }
    return losses
  }

  #find({ url }: Target, method: string, repository: string, reference: string): Promise<Response> {
    return fetch(`${url}/v2/${repository}/manifests/${reference}`, { method, headers: { authorization } })
  }
}
