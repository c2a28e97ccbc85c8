// Clients that push images as real ones do: what fails is tried again, from the upload that failed on. Everything that was
// acknowledged is remembered, the blobs of pushes that failed later included.
import type { Digest } from '../../../src/oci/digest.ts'
import { digestOf, generatedBytes } from '../basics/generated-bytes.ts'
import { authorization, checkBlob, manifestOfBlobs, type Target } from './registry-client.ts'

const triesMax = 60
const pauseMs = 100

export interface PushFigures {
  images: number
  /** Requests that were answered as they should be. */
  requests: number
  /** Connections that broke, and answers of 5xx: what a client takes for worth another try. */
  retries: number
  /** Uploads that the registry would not go on with (416, 404): what docker takes for worth a new one. */
  begunAnew: number
  /** Everything else, and what went on to fail after all tries. */
  readonly failures: string[]
}

interface AcknowledgedImage {
  readonly repository: string
  readonly tag: string
  readonly bytes: Uint8Array
}

class WorthAnotherTry extends Error {}

export class RetryingPushers {
  readonly figures: PushFigures = { images: 0, requests: 0, retries: 0, begunAnew: 0, failures: [] }
  readonly #target: Target
  readonly #blobs = new Map<string, { repository: string; digest: Digest }>()
  readonly #images: AcknowledgedImage[] = []
  readonly #layerBytes: number
  #serial = 0

  constructor(target: Target, layerBytes = 40_000) {
    this.#target = target
    this.#layerBytes = layerBytes
  }

  get acknowledged(): { blobs: number; images: number } {
    return { blobs: this.#blobs.size, images: this.#images.length }
  }

  get someBlob(): Digest {
    const [first] = this.#blobs.values()
    if (first === undefined) throw new Error('nothing was acknowledged')
    return first.digest
  }

  async pushUntil(client: number, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      this.#serial += 1
      await this.#pushImage(`load/${client}`, this.#serial)
    }
  }

  async #pushImage(repository: string, serial: number): Promise<void> {
    const config = generatedBytes(40, serial)
    // Every fifth is one that others push too.
    const layer = generatedBytes(this.#layerBytes, serial % 5 === 0 ? 5 : serial + 1_000_000)
    const bytes = manifestOfBlobs(config, [layer], String(serial))
    const tag = `tag-${serial}`
    for (const blob of [config, layer]) {
      const chunks = serial % 3
      const pushed = await this.#retrying(`blob of ${tag}`, () => this.#pushBlob(repository, blob, chunks))
      if (!pushed) return
      const digest = digestOf(blob)
      this.#blobs.set(`${repository}@${digest}`, { repository, digest })
    }
    const headers = { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }
    const put = async () => {
      await this.#ask(201, 'PUT', `/v2/${repository}/manifests/${tag}`, { headers, body: new Uint8Array(bytes) })
    }
    if (!(await this.#retrying(`manifest of ${tag}`, put))) return
    this.#images.push({ repository, tag, bytes })
    this.figures.images += 1
  }

  /** At once, with a PATCH, or in two of them. */
  async #pushBlob(repository: string, bytes: Uint8Array<ArrayBuffer>, chunks: number): Promise<void> {
    const digest = digestOf(bytes)
    const uploads = `/v2/${repository}/blobs/uploads/`
    if (chunks === 0) {
      await this.#ask(201, 'POST', `${uploads}?digest=${digest}`, { body: bytes })
      return
    }
    const session = (await this.#ask(202, 'POST', uploads)).headers.get('location') ?? ''
    const step = Math.ceil(bytes.length / chunks)
    for (let at = 0; at < bytes.length; at += step) {
      await this.#ask(202, 'PATCH', session, { body: bytes.subarray(at, at + step) })
    }
    await this.#ask(201, 'PUT', `${session}?digest=${digest}`)
  }

  async #ask(status: number, method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization, ...init.headers }
    let answer: Response
    try {
      // Each on a connection of its own, and none of them repeated behind our back.
      answer = await fetch(this.#target.url + path, { ...init, method, headers, keepalive: false })
    } catch (error) {
      throw new WorthAnotherTry(`${method}: ${error instanceof Error ? error.message : String(error)}`)
    }
    const text = await answer.text()
    if (answer.status >= 500) throw new WorthAnotherTry(`${method}: ${answer.status}`)
    if (text.includes('BLOB_UPLOAD_')) {
      this.figures.begunAnew += 1
      throw new WorthAnotherTry(`${method}: ${text}`)
    }
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    this.figures.requests += 1
    return answer
  }

  async #retrying(what: string, act: () => Promise<void>): Promise<boolean> {
    for (let tries = 1; ; tries += 1) {
      try {
        await act()
        return true
      } catch (error) {
        if (!(error instanceof WorthAnotherTry) || tries === triesMax) {
          this.figures.failures.push(`${what}: ${String(error)}`)
          return false
        }
        this.figures.retries += 1
        await Bun.sleep(pauseMs)
      }
    }
  }

  /** Asks for everything that was acknowledged; gives what is lost or changed. */
  async findLosses(target: Target): Promise<string[]> {
    const losses: string[] = []
    for (const { repository, digest } of this.#blobs.values()) {
      const state = await checkBlob(target, repository, digest)
      if (state !== 'whole') losses.push(`blob ${repository}@${digest}: ${state}`)
    }
    for (const { repository, tag, bytes } of this.#images) {
      for (const reference of [tag, digestOf(bytes)]) {
        const path = `${target.url}/v2/${repository}/manifests/${reference}`
        const answer = await fetch(path, { headers: { authorization } })
        const got = Buffer.from(await answer.arrayBuffer())
        if (answer.status !== 200 || !got.equals(bytes)) losses.push(`${repository}:${reference}: ${answer.status}`)
      }
    }
    return losses
  }
}
