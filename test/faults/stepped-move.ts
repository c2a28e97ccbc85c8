// A move in this process that a test stops, holds or disturbs at one point, and what can be done at both ends afterwards.

import { readConfig } from '../../src/app/config.ts'
import { runServer } from '../../src/app/run.ts'
import { type MoveEnd, openSource, openTarget } from '../../src/app/store-move/move-ends.ts'
import { abortMoveOf, type MoveListener, type MoveStep, moveBetween } from '../../src/app/store-move/move-stores.ts'
import type { Marks } from '../../src/ports/marks.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { testAdminPassword, testApiKey } from '../support/basics/test-project.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  type PushedImage,
  pushImage,
  putManifest,
  type Target,
} from '../support/clients/registry-client.ts'
import type { Place } from '../support/moves/move-command.ts'

/** Before a step, or when some of the rows have been copied. */
export type Point = MoveStep | 'amid rows'

const settings = {
  BERTH_SERVER__PORT: '0',
  BERTH_SERVER__HOST: '127.0.0.1',
  BERTH_IDENTITY__ADMIN_API_KEY: testApiKey,
  BERTH_IDENTITY__ADMIN_PASSWORD: testAdminPassword,
  BERTH_LOG__LEVEL: 'silent',
}

export function configOf(place: Place) {
  return readConfig(undefined, { ...settings, ...place.settings })
}

export function serve(place: Place) {
  return runServer(configOf(place))
}

/** `aborted`, `nothing to abort`, or the error. */
export function abort(place: Place, isForced = false): Promise<string> {
  return textOf(
    abortMoveOf(configOf(place), isForced).then((move) => (move === undefined ? 'nothing to abort' : 'aborted')),
  )
}

function textOf(outcome: Promise<string>): Promise<string> {
  return outcome.catch((error: unknown) => String(error))
}

/** Images whose push was acknowledged. */
export class Images {
  readonly #acknowledged = new Map<string, PushedImage>()

  /** A new blob and a manifest. Gives `pushed`, or the error. */
  push(target: Target, tag: string): Promise<string> {
    return textOf(
      pushImage(target, 'race/app', tag, [generatedBytes(2_000, this.#acknowledged.size)]).then((image) => {
        this.#acknowledged.set(tag, image)
        return 'pushed'
      }),
    )
  }

  /** Another manifest for blobs that have been pushed: this changes only rows. */
  async pushManifest(target: Target, tag: string): Promise<void> {
    const [known] = this.#acknowledged.values()
    if (known === undefined) throw new Error('there is no image yet')
    const bytes = new Uint8Array([...known.bytes, ...new TextEncoder().encode('\n'.repeat(this.#acknowledged.size))])
    await expectStatus(201, putManifest(target, 'race/app', tag, bytes))
    this.#acknowledged.set(tag, { ...known, bytes, digest: digestOf(bytes) })
  }

  async findMissing(target: Target): Promise<readonly string[]> {
    const missing: string[] = []
    for (const [tag, { bytes, blobs }] of this.#acknowledged) {
      const answer = await ask(target, 'GET', `/v2/race/app/manifests/${tag}`)
      const isThere = answer.status === 200 && Buffer.from(await answer.arrayBuffer()).equals(bytes)
      const states = await Promise.all(blobs.map((digest) => checkBlob(target, 'race/app', digest)))
      if (!isThere || states.some((state) => state !== 'whole')) missing.push(tag)
    }
    return missing
  }
}

/** Starts a server and pushes to it. Gives the outcome, and the images that are missing where changes are taken. */
export async function pushAt(place: Place, images: Images, tag: string) {
  try {
    const server = await serve(place)
    const outcome = await images.push(server, tag)
    const missing = outcome === 'pushed' ? await images.findMissing(server) : []
    await server.stop()
    return { outcome, missing }
  } catch (error) {
    return { outcome: String(error), missing: [] }
  }
}

export interface MoveOptions {
  /** Called at each point, which waits for it. */
  readonly at?: (point: Point) => Promise<void>
  /** False: the move does not notice that it was aborted. */
  readonly isGuarded?: boolean
}

/** Runs a move. Gives `moved`, or the error. */
export async function move(from: Place, to: Place, { at, isGuarded = true }: MoveOptions = {}): Promise<string> {
  await using source = await openSource(configOf(from))
  await using target = await openTarget(configOf(to))
  let hasRows = false
  const listener: MoveListener = {
    onPlaces: () => undefined,
    onStep: async (step) => at?.(step),
    onStarted: () => undefined,
    onProgress: () => undefined,
    async onRows() {
      if (!hasRows) await at?.('amid rows')
      hasRows = true
    },
    onRetry: () => undefined,
  }
  const ends = isGuarded ? ([source, target] as const) : withoutGuards(source, target)
  return await textOf(moveBetween(...ends, { atOnce: 1, isPreparation: false }, listener).then(({ kind }) => kind))
}

/** To the move, the source's mark `read-only` is always as the move has written it. */
function withoutGuards(source: MoveEnd, target: MoveEnd): readonly [MoveEnd, MoveEnd] {
  let written: string | undefined
  const lying = (marks: Marks): Marks =>
    withMethods(marks, {
      find: async (name) => (name === 'read-only' ? (written ?? (await marks.find(name))) : marks.find(name)),
      set: async (name, text) => {
        // A mark that an abort has removed stays removed for all others.
        if (written === undefined || (await marks.find(name)) !== undefined) await marks.set(name, text)
        written = text
      },
    })
  type Metadata = MoveEnd['metadata']
  const transaction: Metadata['transaction'] = (work) =>
    source.metadata.transaction((tables) => work({ ...tables, marks: lying(tables.marks) }))
  const takeRowsOf: Metadata['takeRowsOf'] = (_, { checkStarted: _guard, ...rest }) =>
    target.metadata.takeRowsOf(source.metadata, rest)
  return [
    { ...source, metadata: withMethods(source.metadata, { transaction }) },
    { ...target, metadata: withMethods(target.metadata, { takeRowsOf }) },
  ]
}

function withMethods<T extends object>(whole: T, methods: Partial<T>): T {
  return new Proxy(whole, {
    get(target, key) {
      const own: unknown = Reflect.get(methods, key) ?? Reflect.get(target, key)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })
}
