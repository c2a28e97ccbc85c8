// A client that does what registries' clients do when a server fails: it sends the request again. It keeps what was
// acknowledged, and every answer that was neither success nor "try again".
import { digestOf, generatedBytes, seededRandom } from '../basics/generated-bytes.ts'
import { ask, checkBlob, manifestOfBlobs, putManifest, type Target } from './registry-client.ts'

/** One request of a push. */
type Step = 'config' | 'session' | 'chunk' | 'close' | 'manifest'

export interface Image {
  readonly repository: string
  readonly tag: string
  readonly config: Uint8Array<ArrayBuffer>
  readonly layer: Uint8Array<ArrayBuffer>
  readonly manifest: Uint8Array
}

/** The config is stored in its row, and the layer is an object. */
export function imageOf(repository: string, seed: number): Image {
  const [config, layer] = [generatedBytes(40, seed), generatedBytes(20_000, seed + 1_000_000)]
  return { repository, tag: `tag-${seed}`, config, layer, manifest: manifestOfBlobs(config, [layer], String(seed)) }
}

/** No answer for so long is a hang, whatever the server is waiting for. */
const answerMs = 20_000
const triesMax = 500
const pauseMs = 40

class SessionBusy extends Error {}

export class PatientClient {
  readonly #target: () => Target
  readonly #startsAnew: boolean
  readonly #acknowledged: Image[] = []
  /** Answers that asked to try again, and connections that ended: `503`, `ConnectionClosed` -> how often. */
  readonly failures = new Map<string, number>()
  /** What no client should ever see. */
  readonly wrong: string[] = []

  /**
   * The target may be another one for the next request: a replica, or the same after a restart. A server that lost its
   * database in the middle of a chunk cannot record that the writer is gone, and for half a minute the
   * session is busy: with `startsAnew` the client then opens another one, as real clients do.
   */
  constructor(target: () => Target, startsAnew = false) {
    this.#target = target
    this.#startsAnew = startsAnew
  }

  get acknowledged(): number {
    return this.#acknowledged.length
  }

  /** Request by request, each until it succeeds. */
  async push(image: Image): Promise<void> {
    try {
      for await (const _ of this.#pushSteps(image));
    } catch (error) {
      if (!(error instanceof SessionBusy)) throw error
      this.#count('416 (busy)')
      await this.push(image)
      return
    }
    this.#acknowledged.push(image)
  }

  /** As `push`, but what fails is left at that. Gives the step that failed. */
  async pushOnce(image: Image): Promise<Step | undefined> {
    for await (const [step, answer] of this.#pushSteps(image)) if (!isSuccess(answer)) return step
    return undefined
  }

  async *#pushSteps(image: Image): AsyncGenerator<[Step, string]> {
    const { repository, tag, config, layer, manifest } = image
    const uploads = `/v2/${repository}/blobs/uploads/`
    const middle = layer.length / 2
    let session = ''
    yield* this.#again('config', 201, () =>
      this.#ask('POST', `${uploads}?digest=${digestOf(config)}`, { body: config }),
    )
    yield* this.#again('session', 202, async () => {
      const answer = await this.#ask('POST', uploads)
      session = answer.headers.get('location') ?? ''
      return answer
    })
    yield* this.#again('chunk', 202, async () => {
      // A chunk whose answer was lost may be there already: the session knows.
      const received = await this.#receivedBytes(session)
      if (typeof received !== 'number') return received
      const headers = { 'content-range': `${received}-${middle - 1}` }
      if (received === middle) return new Response(null, { status: 202 })
      return this.#ask('PATCH', session, { body: layer.slice(received, middle), headers })
    })
    yield* this.#again('close', 201, () =>
      this.#ask('PUT', `${session}?digest=${digestOf(layer)}`, { body: layer.slice(middle) }),
    )
    yield* this.#again('manifest', 201, () => this.#limited(putManifest(this.#target(), repository, tag, manifest)))
  }

  async *#again(step: Step, expected: number, request: () => Promise<Response>): AsyncGenerator<[Step, string]> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const answer = await this.#answerOf(step, expected, request)
      yield [step, answer]
      if (isSuccess(answer)) return
      await Bun.sleep(pauseMs)
    }
    throw new Error(`${step} did not succeed in ${triesMax} tries`)
  }

  async #answerOf(step: Step, expected: number, request: () => Promise<Response>): Promise<string> {
    let answer: string
    try {
      const response = await request()
      const text = await response.text()
      if (response.status === expected) return String(expected)
      answer = String(response.status)
      if (this.#startsAnew && answer === '416' && text.includes('another request is writing')) throw new SessionBusy()
      if (response.status !== 503) throw new Error(this.#note(`${step}: ${answer} ${text}`))
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      answer = error.code
    }
    this.#count(answer)
    return answer
  }

  #count(failure: string): void {
    this.failures.set(failure, (this.failures.get(failure) ?? 0) + 1)
  }

  async #receivedBytes(session: string): Promise<number | Response> {
    const answer = await this.#ask('GET', session)
    if (answer.status !== 204) return answer
    const last = Number(answer.headers.get('range')?.replace('0-', ''))
    return last === 0 ? 0 : last + 1
  }

  #ask(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    return this.#limited(ask(this.#target(), method, path, init))
  }

  async #limited(asked: Promise<Response>): Promise<Response> {
    const limit = Promise.withResolvers<never>()
    const timer = setTimeout(() => limit.reject(new Error(this.#note('no answer at all'))), answerMs)
    return Promise.race([asked, limit.promise]).finally(() => clearTimeout(timer))
  }

  #note(what: string): string {
    this.wrong.push(what)
    return what
  }

  /** A pull of something that was acknowledged: the tag, then the bytes; as often as it takes. */
  async pullOne(random: () => number): Promise<void> {
    const image = this.#acknowledged[Math.floor(random() * this.#acknowledged.length)]
    if (image === undefined) return
    for (let tries = 0; tries < triesMax; tries += 1) {
      const loss = await this.#lossOf(image).catch((error: unknown) => {
        if (isConnectionLost(error)) return error.code
        throw error
      })
      if (loss === undefined) return
      if (!/503$|^(Connection|E)/.test(loss)) throw new Error(this.#note(`pull: ${loss}`))
      this.#count(loss.endsWith('503') ? '503' : loss)
      await Bun.sleep(pauseMs)
    }
    throw new Error(`a pull did not succeed in ${triesMax} tries`)
  }

  /** Requests everything that was acknowledged; gives what is lost or changed. */
  async findLosses(): Promise<string[]> {
    const losses: string[] = []
    for (const image of this.#acknowledged) {
      const loss = await this.#lossOf(image)
      if (loss !== undefined) losses.push(loss)
    }
    return losses
  }

  async #lossOf({ repository, tag, config, layer, manifest }: Image): Promise<string | undefined> {
    const answer = await this.#ask('GET', `/v2/${repository}/manifests/${tag}`)
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (answer.status !== 200) return `${repository}:${tag}: status ${answer.status}`
    if (!bytes.equals(manifest)) return `${repository}:${tag}: another manifest`
    for (const blob of [config, layer]) {
      const state = await checkBlob(this.#target(), repository, digestOf(blob))
      if (state !== 'whole') return `${repository}@${digestOf(blob)}: ${state}`
    }
    return undefined
  }
}

function isSuccess(answer: string): boolean {
  return answer.startsWith('2')
}

/** Refused, reset, closed: the client's own words for a server that is not there. */
function isConnectionLost(error: unknown): error is Error & { readonly code: string } {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && /^(Connection|E)/.test(error.code)
  )
}

/** Pushes and pulls of many at once, until told to end. */
export async function keepBusy(client: PatientClient, workers: number, isOver: () => boolean): Promise<void> {
  const random = seededRandom(workers)
  const work = async (worker: number) => {
    for (let round = 0; !isOver(); round += 1) {
      await client.push(imageOf(`load/${worker}`, worker * 100_000 + client.acknowledged * 7 + round))
      await client.pullOne(random)
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
}
