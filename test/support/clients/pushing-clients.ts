// Clients that push small images without end, as registries' clients do: a request that fails is sent again. They keep what
// the registry has acknowledged, so that a test can check after a fault that nothing of it is lost.
import type { Digest } from '../../../src/oci/digest.ts'
import { digestOf, generatedBytes, seededRandom } from '../basics/generated-bytes.ts'
import { authorization, checkBlob, manifestOfBlobs, type Target } from './registry-client.ts'

interface Options {
  /** How often a request is sent before the client gives up. With 1, each client moves one tag of its own. */
  readonly triesMax?: number
  readonly layerBytesMax?: number
  readonly seed?: number
  /** All images have the same form, so that each push sends the same requests. */
  readonly isUniform?: boolean
}

export interface PushFigures {
  images: number
  /** Requests that were answered as they should be. */
  requests: number
  /** Why requests were repeated: the status of a 5xx, or the code of a broken connection, and how often. */
  readonly retries: Map<string, number>
  /** Uploads that the registry would not continue, because another writer is busy (416) or the session is gone (404). */
  readonly restartedUploads: string[]
  /** Every other refusal, requests that failed in every try or got no answer, and wrong content. */
  readonly failures: string[]
}

interface TagHistory {
  acknowledged: Digest | undefined
  /** Sent, but never answered: the tag may point to any of these as well. */
  unanswered: Digest[]
}

interface PushedManifest {
  readonly repository: string
  readonly bytes: Uint8Array
  readonly blobs: readonly Digest[]
}

interface Answer {
  readonly headers: Headers
  readonly body: Buffer
}

const pauseMs = 50
/** A request that is not answered in this time hangs. */
const answerMs = 30_000

class Retryable extends Error {}
class BrokenConnection extends Retryable {}
class SessionLost extends Error {}

export class PushingClients {
  readonly figures: PushFigures = { images: 0, requests: 0, retries: new Map(), restartedUploads: [], failures: [] }
  readonly #options: Required<Options>
  readonly #random: () => number
  readonly #blobs = new Map<string, { repository: string; digest: Digest }>()
  readonly #manifests = new Map<string, PushedManifest>()
  readonly #tags = new Map<string, TagHistory>()
  #serial = 0

  constructor({ triesMax = 300, layerBytesMax = 40_000, seed = 1, isUniform = false }: Options = {}) {
    this.#options = { triesMax, layerBytesMax, seed, isUniform }
    this.#random = seededRandom(seed)
  }

  get size(): { blobs: number; manifests: number; tags: number } {
    return { blobs: this.#blobs.size, manifests: this.#manifests.size, tags: this.#tags.size }
  }

  /** The blobs that were acknowledged. */
  get digests(): Digest[] {
    return [...this.#blobs.values()].map(({ digest }) => digest)
  }

  /** Pushes, and pulls something that was acknowledged. */
  async pushUntil(target: Target, client: number, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      if (!(await this.push(target, client))) await Bun.sleep(1)
      else if (this.#options.triesMax > 1) await this.#pullOne(target)
    }
  }

  /** Pushes one image to the repository `load/<client modulo 2>`; returns whether all of it was acknowledged. */
  async push(target: Target, client = 0): Promise<boolean> {
    this.#serial += 1
    const serial = this.#serial
    const { triesMax, layerBytesMax, isUniform, seed } = this.#options
    const content = (seed % 1_000) * 1_000_000 + serial
    const repository = `load/${client % 2}`
    // A client that repeats requests could meet its own late request at a tag that it moves.
    const tag = triesMax === 1 ? `tag-${client}` : `tag-${serial}`
    const config = generatedBytes(40, content)
    const size = isUniform ? layerBytesMax : 4 + Math.floor(this.#random() * layerBytesMax)
    // Every fifth layer is one that others push too, so that duplicates and their trash occur.
    const isShared = !isUniform && serial % 5 === 0
    const layer = isShared ? generatedBytes(1_000, 5) : generatedBytes(size, content + 500_000)
    const blobs = [digestOf(config), digestOf(layer)]
    const bytes = manifestOfBlobs(config, [layer], String(serial))
    try {
      await this.#pushBlob(target, repository, config, isUniform ? 0 : serial % 3)
      await this.#pushBlob(target, repository, layer, isUniform ? 2 : serial % 3)
      await this.#pushManifest(target, tag, { repository, bytes, blobs })
    } catch (error) {
      // A broken connection is no failure of a client that sends each request once.
      if (!(error instanceof BrokenConnection) || triesMax > 1) this.figures.failures.push(String(error))
      return false
    }
    this.figures.images += 1
    return true
  }

  /** `form`: in one request (0), with a PATCH (1), or half with a PATCH and half with the closing PUT (2). */
  async #pushBlob(target: Target, repository: string, bytes: Uint8Array<ArrayBuffer>, form: number): Promise<void> {
    const digest = digestOf(bytes)
    const uploads = `/v2/${repository}/blobs/uploads/`
    if (form === 0) await this.#retrying(() => this.#ask(target, 201, 'POST', `${uploads}?digest=${digest}`, bytes))
    else {
      const end = form === 1 ? bytes.length : Math.ceil(bytes.length / 2)
      while (!(await this.#pushInSession(target, uploads, bytes, end)));
    }
    this.#blobs.set(`${repository}@${digest}`, { repository, digest })
  }

  /**
   * Returns false if the registry refuses to continue the session, or if the connection broke: then clients start the upload
   * again. A server that was killed may still have the turn for half a minute.
   */
  async #pushInSession(
    target: Target,
    uploads: string,
    bytes: Uint8Array<ArrayBuffer>,
    chunkEnd: number,
  ): Promise<boolean> {
    try {
      const opened = await this.#retrying(() => this.#ask(target, 202, 'POST', uploads))
      const session = opened.headers.get('location') ?? ''
      await this.#retrying(async () => {
        // A chunk whose answer was lost may be stored already.
        const { headers } = await this.#ask(target, 204, 'GET', session)
        const last = Number(headers.get('range')?.replace('0-', ''))
        const first = last === 0 ? 0 : last + 1
        const range = { 'content-range': `${first}-${chunkEnd - 1}` }
        if (first < chunkEnd) await this.#ask(target, 202, 'PATCH', session, bytes.subarray(first, chunkEnd), range)
      }, true)
      const closing = `${session}?digest=${digestOf(bytes)}`
      await this.#retrying(() => this.#ask(target, 201, 'PUT', closing, bytes.subarray(chunkEnd)), true)
      return true
    } catch (error) {
      const isOver = error instanceof SessionLost || error instanceof BrokenConnection
      if (!isOver || this.#options.triesMax === 1) throw error
      this.figures.restartedUploads.push(error.message)
      await Bun.sleep(pauseMs)
      return false
    }
  }

  async #pushManifest(target: Target, tag: string, manifest: PushedManifest): Promise<void> {
    const { repository, bytes } = manifest
    const digest = digestOf(bytes)
    const history = this.#tags.get(`${repository}:${tag}`) ?? { acknowledged: undefined, unanswered: [] }
    this.#tags.set(`${repository}:${tag}`, history)
    history.unanswered.push(digest)
    const type = { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }
    const path = `/v2/${repository}/manifests/${tag}`
    await this.#retrying(() => this.#ask(target, 201, 'PUT', path, new Uint8Array(bytes), type))
    this.#manifests.set(`${repository}@${digest}`, manifest)
    history.acknowledged = digest
    history.unanswered = []
  }

  async #pullOne(target: Target): Promise<void> {
    const all = [...this.#manifests.values()]
    const image = all[Math.floor(this.#random() * all.length)]
    if (image === undefined) return
    const { repository, bytes, blobs } = image
    const paths = [`manifests/${digestOf(bytes)}`, ...blobs.map((digest) => `blobs/${digest}`)]
    for (const path of paths) {
      const pull = () => this.#ask(target, 200, 'GET', `/v2/${repository}/${path}`)
      await this.#retrying(pull).then(
        ({ body }) => path.endsWith(digestOf(body)) || this.figures.failures.push(`${path}: other bytes`),
        (error: unknown) => this.figures.failures.push(String(error)),
      )
    }
  }

  async #ask(
    target: Target,
    status: number,
    method: string,
    path: string,
    body?: Uint8Array<ArrayBuffer>,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const headers = { authorization, ...more }
    // Each request has its own connection, because Bun repeats requests on connections that were used before.
    const init = { method, headers, keepalive: false, signal: AbortSignal.timeout(answerMs) }
    let answer: Response
    let received: Buffer
    try {
      answer = await fetch(target.url + path, body === undefined ? init : { ...init, body })
      received = Buffer.from(await answer.arrayBuffer())
    } catch (error) {
      if (!(error instanceof Error) || error.name === 'TimeoutError') throw new Error(`${method} ${path}: no answer`)
      throw new BrokenConnection('code' in error ? String(error.code) : error.name)
    }
    if (answer.status === status) {
      this.figures.requests += 1
      return { headers: answer.headers, body: received }
    }
    if (answer.status >= 500) throw new Retryable(String(answer.status))
    const text = `${method} ${path}: ${answer.status} ${received}`
    throw text.includes('BLOB_UPLOAD_') ? new SessionLost(text) : new Error(text)
  }

  async #retrying<T>(act: () => Promise<T>, isInSession = false): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await act()
      } catch (error) {
        if (!(error instanceof Retryable) || tries === this.#options.triesMax) throw error
        const hasArrived = error instanceof BrokenConnection && !/refused/i.test(error.message)
        if (isInSession && hasArrived) throw error
        const { retries } = this.figures
        retries.set(error.message, (retries.get(error.message) ?? 0) + 1)
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
