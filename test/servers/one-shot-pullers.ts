// Clients that pull the same images again and again. Each request is sent once, on a connection of its own: one that fails has
// failed, and what comes back is compared to the last byte.
import { authorization, type PushedImage } from '../support/clients/registry-client.ts'

export interface PullFigures {
  requests: number
  bytes: number
  longestMs: number
  readonly failures: string[]
}

export interface PullableImage extends PushedImage {
  readonly repository: string
  readonly tag: string
  /** By digest. */
  readonly contents: ReadonlyMap<string, Uint8Array>
}

export class OneShotPullers {
  readonly figures: PullFigures = { requests: 0, bytes: 0, longestMs: 0, failures: [] }
  readonly #url: string

  constructor({ url }: { readonly url: string }) {
    this.#url = url
  }

  async pullUntil(image: PullableImage, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const prefix = `/v2/${image.repository}`
      await this.#pull(`${prefix}/manifests/${image.tag}`, image.bytes)
      for (const [digest, bytes] of image.contents) await this.#pull(`${prefix}/blobs/${digest}`, bytes)
    }
  }

  async #pull(path: string, expected: Uint8Array): Promise<void> {
    const startedAt = performance.now()
    const { figures } = this
    try {
      const answer = await fetch(this.#url + path, { headers: { authorization }, keepalive: false })
      const { status } = answer
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (status !== 200) throw new Error(`status ${status}`)
      if (!bytes.equals(expected)) throw new Error(`${bytes.length} other bytes`)
      figures.bytes += bytes.length
    } catch (error) {
      figures.failures.push(`${path}: ${error instanceof Error ? error.message : String(error)}`)
    }
    figures.requests += 1
    figures.longestMs = Math.max(figures.longestMs, performance.now() - startedAt)
  }
}
