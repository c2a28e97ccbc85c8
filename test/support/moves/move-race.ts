// A move that is held at one point while somebody aborts it and pushes: what is where afterwards, and who would serve it.

import { readConfig } from '../../../src/app/config.ts'
import { type RunningServer, runServer } from '../../../src/app/run.ts'
import { abortMove } from '../../../src/app/store-move/move-abort.ts'
import { closeEnd, type MoveEnd, openSource, openTarget } from '../../../src/app/store-move/move-ends.ts'
import { nameStore, readFreeze } from '../../../src/app/store-move/move-state.ts'
import { type MoveListener, moveBetween } from '../../../src/app/store-move/move-stores.ts'
import type { Marks } from '../../../src/ports/marks.ts'
import type { Tables } from '../../../src/ports/metadata-store.ts'
import { digestOf, generatedBytes } from '../basics/generated-bytes.ts'
import { testAdminPassword, testApiKey } from '../basics/test-project.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  type PushedImage,
  pushImage,
  putManifest,
  type Target,
} from '../clients/registry-client.ts'
import { Gate } from '../clocks/gates.ts'
import type { Place } from './move-command.ts'

/** Where the move is held, in its order. */
export type Point = 'last bytes' | 'before rows' | 'amid rows' | 'rows are in' | 'source is told' | 'bytes are owned'

/**
 * What keeps a move that was aborted from its end. `last look`: the one after the bytes have changed hands is taken out.
 * `none`: to the move it always looks as if nobody had aborted it.
 */
export type Guards = 'all' | 'all but the last look' | 'none'

export interface RaceEnd {
  /** `moved`, or why not. */
  readonly move: string
  /** What `--abort` said without `--force`: `aborted`, or why not. */
  readonly abort: string
  /** `yes`, or why no server starts on the target. */
  readonly targetServes: string
  /** Acknowledged images that are missing, damaged or unknown there. */
  readonly missingAtTarget: readonly string[]
  readonly missingAtSource: readonly string[]
  readonly sourceOwnsBlobs: boolean
}

const pusher = {
  BERTH_SERVER__PORT: '0',
  BERTH_SERVER__HOST: '127.0.0.1',
  BERTH_IDENTITY__ADMIN_API_KEY: testApiKey,
  BERTH_IDENTITY__ADMIN_PASSWORD: testAdminPassword,
  BERTH_LOG__LEVEL: 'silent',
}

export function configOf({ settings }: Place) {
  return readConfig(undefined, { ...pusher, ...settings })
}

export function serveIn(place: Place): Promise<RunningServer> {
  return runServer(configOf(place))
}

export class Images {
  readonly #acknowledged = new Map<string, PushedImage>()

  async push(target: Target, tag: string): Promise<void> {
    const layer = generatedBytes(2_000, this.#acknowledged.size)
    this.#acknowledged.set(tag, await pushImage(target, 'race/app', tag, [layer]))
  }

  /** Another manifest over the bytes of one that is there: nothing but rows. */
  async pushAgain(target: Target, tag: string): Promise<void> {
    const [known] = this.#acknowledged.values()
    if (known === undefined) throw new Error('there is no image yet')
    const bytes = new Uint8Array([...known.bytes, ...new TextEncoder().encode('\n')])
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

/** Aborts at the point, without force first; pushes before the move goes on, and when it has ended. */
export async function raceAbort(from: Place, to: Place, point: Point, guards: Guards): Promise<RaceEnd> {
  const server = await serveIn(from)
  const images = new Images()
  await images.push(server, 'before')
  const gate = new Gate()
  const running = moveWith(
    from,
    to,
    guards,
    held(point, gate, () => images.push(server, 'meanwhile')),
  )
  await Promise.race([gate.reached, running.then((end) => Promise.reject(new Error(`never at the gate: ${end}`)))])
  const abort = await wordOf(abortMove(configOf(from), false).then(() => 'aborted'))
  if (abort !== 'aborted') await abortMove(configOf(from), true)
  await images.pushAgain(server, 'aborted')
  gate.open()
  const move = await running
  await images.push(server, 'ended')
  const atTarget = await lookAt(to, images)
  const missingAtSource = await images.findMissing(server)
  await server.stop()
  return { move, abort, ...atTarget, missingAtSource, sourceOwnsBlobs: await ownsBlobs(from) }
}

export async function lookAt(to: Place, images: Images) {
  try {
    const server = await serveIn(to)
    const missingAtTarget = await images.findMissing(server)
    await server.stop()
    return { targetServes: 'yes', missingAtTarget }
  } catch (error) {
    return { targetServes: String(error), missingAtTarget: [] }
  }
}

/** Whether the place takes changes, and the blobs are its own. */
export async function ownsBlobs(place: Place): Promise<boolean> {
  const end = await openSource(configOf(place))
  try {
    const id = await nameStore(end.metadata)
    // Nobody is not there to take anything: this only tells whose they are.
    const owner = await end.blobs.claim('nobody', { mayBeNew: false })
    return owner === id && (await readFreeze(end.metadata)) === undefined
  } finally {
    await closeEnd(end)
  }
}

export function wordOf(end: Promise<string>): Promise<string> {
  return end.catch((error: unknown) => String(error))
}

interface Hold {
  readonly source: (end: MoveEnd) => MoveEnd
  readonly target: (end: MoveEnd) => MoveEnd
  readonly listener: Partial<MoveListener>
}

const quiet: MoveListener = {
  onStep: () => undefined,
  onFrozen: () => undefined,
  onRowsBegin: () => undefined,
  onProgress: () => undefined,
  onRows: () => undefined,
  onTrouble: () => undefined,
}

const noHold: Hold = { source: (end) => end, target: (end) => end, listener: {} }

/** Runs a move in this process. Gives `moved`, or why not. */
export async function moveWith(from: Place, to: Place, guards: Guards = 'all', hold: Hold = noHold): Promise<string> {
  const [source, target] = [await openSource(configOf(from)), await openTarget(configOf(to))]
  try {
    const held = { source: hold.source(unguarded(source, guards)), target: hold.target(target) }
    // The rows are read from the true source, whose inside another class than its own cannot see.
    const taking = replaced(held.target, 'takeRowsOf', (take) => (_, move) => {
      const { checkStillOn: _look, ...rest } = move
      return take(source.metadata, guards === 'none' ? rest : move)
    })
    const options = { atOnce: 1, isPreparation: false }
    return await wordOf(
      moveBetween(held.source, taking, options, { ...quiet, ...hold.listener }).then(({ kind }) => kind),
    )
  } finally {
    await closeEnd(target)
    await closeEnd(source)
  }
}

/** The end with one method of its metadata replaced. */
function replaced<K extends 'takeRowsOf' | 'transaction'>(
  end: MoveEnd,
  name: K,
  change: (own: MoveEnd['metadata'][K]) => MoveEnd['metadata'][K],
): MoveEnd {
  const metadata = new Proxy(end.metadata, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key)
      const bound: unknown = typeof own === 'function' ? own.bind(target) : own
      return key === name ? change(bound as MoveEnd['metadata'][K]) : bound
    },
  })
  return { ...end, metadata }
}

/** To the move it looks as if its mark stood as it was put. */
function unguarded(end: MoveEnd, guards: Guards): MoveEnd {
  if (guards === 'all') return end
  let known: string | undefined
  const lie = (marks: Marks): Marks => ({
    find: async (name) => (name === 'read-only' && guards === 'none' ? (known ?? marks.find(name)) : marks.find(name)),
    findLocked: async (name) => (name === 'read-only' ? (known ?? marks.findLocked(name)) : marks.findLocked(name)),
    holdUpOthers: () => marks.holdUpOthers(),
    async put(name, text) {
      // What was removed stays so: the others see the true mark.
      if (known === undefined || (await marks.find(name)) !== undefined) await marks.put(name, text)
      if (name === 'read-only') known = text
    },
    remove: (name) => marks.remove(name),
    keepOlderOut: () => marks.keepOlderOut(),
    letOlderIn: () => marks.letOlderIn(),
  })
  return replaced(end, 'transaction', (own) => (work) => own((tables) => work(withMarks(tables, lie(tables.marks)))))
}

function withMarks(tables: Tables, marks: Marks): Tables {
  return { ...tables, marks }
}

/** A move that stands still at the point, once. `meanwhile` happens as the registry is about to take no more changes. */
export function held(point: Point, gate: Gate, meanwhile: () => Promise<void>): Hold {
  let isFrozen = false
  let transactions = 0
  const passAt = async (here: Point) => {
    if (here === point) await gate.pass()
  }
  return {
    source: (end) => ({
      ...replaced(end, 'transaction', (own) => async (work) => {
        transactions += 1
        if (transactions === 1) await meanwhile()
        const result = await own(work)
        if ((await readFreeze(end.metadata))?.phase === 'moved') await passAt('source is told')
        return result
      }),
      blobs: around(end.blobs, 'read', async (open) => {
        if (isFrozen) await passAt('last bytes')
        return open()
      }),
      signingKeys: around(end.signingKeys, 'list', async (list) => {
        if (isFrozen) await passAt('before rows')
        return list()
      }),
    }),
    target: (end) => ({
      ...replaced(end, 'takeRowsOf', (take) => async (source, move) => {
        const rows = await take(source, move)
        await passAt('rows are in')
        return rows
      }),
      blobs: around(end.blobs, 'claim', async (claim) => {
        const owner = await claim()
        if (isFrozen) await passAt('bytes are owned')
        return owner
      }),
    }),
    listener: {
      onFrozen: () => {
        isFrozen = true
      },
      onRows: () => passAt('amid rows'),
    },
  }
}

/** The end whose transaction of this number, once committed, is followed by something else. */
export function afterTransaction(end: MoveEnd, number: number, act: () => Promise<void>): MoveEnd {
  let transactions = 0
  return replaced(end, 'transaction', (own) => async (work) => {
    const result = await own(work)
    transactions += 1
    if (transactions === number) await act()
    return result
  })
}

/** The same object, one of whose methods does something more. */
export function around<T extends object>(whole: T, name: keyof T, act: (call: () => unknown) => Promise<unknown>): T {
  return new Proxy(whole, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key)
      if (typeof own !== 'function') return own
      return key === name ? (...values: unknown[]) => act(() => own.apply(target, values)) : own.bind(target)
    },
  })
}
