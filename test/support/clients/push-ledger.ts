// What a registry has acknowledged, kept by its clients, so that it can be held to it after a crash.
import type { Digest } from '../../../src/oci/digest.ts'
import { digestOf, generatedBytes } from '../basics/generated-bytes.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  manifestOfBlobs,
  openSession,
  patch,
  pushBlob,
  putManifest,
  type Target,
} from './registry-client.ts'

interface TagHistory {
  acknowledged: Digest | undefined
  /** Sent, but the answer never came: the tag may point to any of these as well. */
  unanswered: Digest[]
}

/** Clients that push small images without end, and the list of what they were promised. */
export class PushLedger {
  readonly #random: () => number
  readonly #blobs = new Map<string, { repository: string; digest: Digest }>()
  readonly #manifests = new Map<string, { repository: string; bytes: Uint8Array }>()
  readonly #tags = new Map<string, TagHistory>()
  #serial = 0
  #unbroken = 0

  constructor(random: () => number) {
    this.#random = random
  }

  get size(): { blobs: number; manifests: number; tags: number } {
    return { blobs: this.#blobs.size, manifests: this.#manifests.size, tags: this.#tags.size }
  }

  /** Some blob that was acknowledged. */
  get someBlob(): Digest {
    const [first] = this.#blobs.values()
    if (first === undefined) throw new Error('nothing was acknowledged')
    return first.digest
  }

  /** Failures that did not come from a broken connection: a server that lives must not fail. */
  get unbrokenFailures(): number {
    return this.#unbroken
  }

  /** Pushes until the server is gone. Each client has a tag of its own that it moves with every push. */
  async pushWhileAlive(target: Target, client: number, isOver: () => boolean): Promise<void> {
    const repository = `load/${client % 2}`
    while (!isOver()) {
      try {
        await this.#pushOne(target, repository, `tag-${client}`)
      } catch (error) {
        if (error instanceof Error && error.message.startsWith('expected ')) this.#unbroken += 1
        // The end of the connection is the end of the server: the caller knows when that is.
        if (isOver()) return
        await Bun.sleep(1)
      }
    }
  }

  async #pushOne(target: Target, repository: string, tag: string): Promise<void> {
    this.#serial += 1
    const seed = this.#serial
    const config = generatedBytes(40, seed)
    // Every fifth layer is one that others push too, so that duplicates and their trash occur.
    const layer = generatedBytes(1 + Math.floor(this.#random() * 30_000), seed % 5 === 0 ? 5 : seed + 1_000_000)
    this.#acknowledged(repository, await pushBlob(target, repository, config))
    this.#acknowledged(repository, await this.#pushInChunks(target, repository, layer))
    const bytes = manifestOfBlobs(config, [layer], String(seed))
    const digest = digestOf(bytes)
    const history = this.#historyOf(repository, tag)
    history.unanswered.push(digest)
    await expectStatus(201, putManifest(target, repository, tag, bytes))
    this.#manifests.set(`${repository}@${digest}`, { repository, bytes })
    history.acknowledged = digest
    history.unanswered = []
  }

  async #pushInChunks(target: Target, repository: string, bytes: Uint8Array): Promise<Digest> {
    if (this.#random() < 0.5) return pushBlob(target, repository, bytes)
    const session = await openSession(target, repository)
    const middle = Math.floor(bytes.length / 2)
    await expectStatus(202, patch(target, session, bytes.subarray(0, middle)))
    await expectStatus(201, finish(target, session, digestOf(bytes), bytes.subarray(middle)))
    return digestOf(bytes)
  }

  #acknowledged(repository: string, digest: Digest): void {
    this.#blobs.set(`${repository}@${digest}`, { repository, digest })
  }

  #historyOf(repository: string, tag: string): TagHistory {
    const name = `${repository}:${tag}`
    const history = this.#tags.get(name) ?? { acknowledged: undefined, unanswered: [] }
    this.#tags.set(name, history)
    return history
  }

  /** Asks for everything that was acknowledged; gives what is lost or changed. */
  async findLosses(target: Target): Promise<string[]> {
    const losses: string[] = []
    for (const { repository, digest } of this.#blobs.values()) {
      const state = await checkBlob(target, repository, digest)
      if (state !== 'whole') losses.push(`blob ${repository}@${digest}: ${state}`)
    }
    for (const [name, { repository, bytes }] of this.#manifests) {
      const answer = await ask(target, 'GET', `/v2/${repository}/manifests/${digestOf(bytes)}`)
      const got = Buffer.from(await answer.arrayBuffer())
      if (answer.status !== 200 || !got.equals(bytes)) losses.push(`manifest ${name}: status ${answer.status}`)
    }
    for (const [name, history] of this.#tags) {
      const [repository = '', tag = ''] = name.split(':')
      const answer = await ask(target, 'HEAD', `/v2/${repository}/manifests/${tag}`)
      const digest = answer.headers.get('docker-content-digest')
      const allowed: (string | null | undefined)[] = [history.acknowledged ?? null, ...history.unanswered]
      if (!allowed.includes(digest)) losses.push(`tag ${name}: points to ${digest}`)
    }
    return losses
  }
}
