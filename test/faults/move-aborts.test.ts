// `--abort` while the move still runs somewhere, at every point of it: either end may win, and never both.
import { describe, expect } from 'bun:test'
import { abortAt, abortMove } from '../../src/app/store-move/move-abort.ts'
import { closeEnd, openSource } from '../../src/app/store-move/move-ends.ts'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { Gate } from '../support/clocks/gates.ts'
import { type Place, placeIn, placeOnServers } from '../support/moves/move-command.ts'
import {
  afterTransaction,
  configOf,
  held,
  Images,
  lookAt,
  moveWith,
  ownsBlobs,
  type Point,
  type RaceEnd,
  raceAbort,
  serveIn,
  wordOf,
} from '../support/moves/move-race.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { freshPrefix, sharedS3, testS3Need } from '../support/s3/test-s3.ts'
import { s3Variables } from '../support/stores/test-stores.ts'

const newFolder = useTemporaryFolders('move-aborts')

/** SQLite, and a part of a bucket that others may name as well. */
async function placeInBucket(prefix: string): Promise<Place> {
  const place = placeIn(newFolder())
  return { ...place, settings: { ...place.settings, ...s3Variables(await sharedS3(), prefix) } }
}

function bucketOf({ settings }: Place): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => name.startsWith('BERTH_STORAGE__')))
}

interface Kind {
  readonly need: Need
  readonly keepsBlobStore: boolean
  /** That the guards are needed has to be shown for each way to move, not on each engine. */
  readonly hasControls: boolean
  places(): Promise<readonly [Place, Place]>
}

const kinds: Readonly<Record<string, Kind>> = {
  'from folder to folder': {
    need: { isMet: true, reason: '' },
    keepsBlobStore: false,
    hasControls: true,
    places: async () => [placeIn(newFolder()), placeIn(newFolder())],
  },
  'with one bucket kept': {
    need: testS3Need(),
    keepsBlobStore: true,
    hasControls: true,
    async places() {
      const prefix = freshPrefix()
      return [await placeInBucket(prefix), await placeInBucket(prefix)]
    },
  },
  'from PostgreSQL to PostgreSQL, with one bucket kept': {
    need: postgres.isMet ? testS3Need() : postgres,
    keepsBlobStore: true,
    hasControls: false,
    async places() {
      const bucket = s3Variables(await sharedS3(), freshPrefix())
      const [from, to] = [await placeOnServers(newFolder(), 'files'), await placeOnServers(newFolder(), 'files')]
      return [
        { ...from, settings: { ...from.settings, ...bucket } },
        { ...to, settings: { ...to.settings, ...bucket } },
      ]
    },
  },
}

const points: Readonly<Record<Point, string>> = {
  'last bytes': 'as the last bytes are copied',
  'before rows': 'before the rows',
  'amid rows': 'as the rows are copied',
  'rows are in': 'when all rows are in, and nobody knows it',
  'source is told': 'when the old place has been told',
  'bytes are owned': 'when the bytes have changed hands',
}

/** What `--abort` says without `--force`. */
function refusalAt(point: Point): string {
  if (point === 'last bytes' || point === 'before rows') return 'aborted'
  return point === 'amid rows' || point === 'rows are in' ? 'all rows may be in' : 'the registry was moved to'
}

function isPoint(text: string): text is Point {
  return text in points
}

for (const [kind, { need, keepsBlobStore, hasControls, places }] of Object.entries(kinds)) {
  describe(`a move ${kind} that is aborted`, () => {
    for (const [point, when] of Object.entries(points)) {
      if (!isPoint(point) || (point === 'last bytes' && keepsBlobStore)) continue

      testNeeding(need, `${when} leaves the registry where it was, with all that was acknowledged`, async () => {
        const [from, to] = await places()

        const end = await raceAbort(from, to, point, 'all')

        expect(end.abort).toContain(refusalAt(point))
        expect(end.move).toContain('MoveAborted: the move was aborted meanwhile')
        expect(end.targetServes).toContain('a registry is being moved to these stores')
        expect([end.missingAtSource, end.sourceOwnsBlobs]).toEqual([[], true])
      })

      if (!hasControls) continue
      testNeeding(need, `${when} would be moved without the guards (control)`, async () => {
        const [from, to] = await places()

        expectBothEnds(await raceAbort(from, to, point, 'none'), point, keepsBlobStore)
      })

      if (point !== 'source is told' && point !== 'bytes are owned') continue
      testNeeding(need, `${when} would be moved without the last look (control)`, async () => {
        const [from, to] = await places()

        expectBothEnds(await raceAbort(from, to, point, 'all but the last look'), point, keepsBlobStore)
      })
    }
  })
}

/** What must not be: it is said to be moved, and the old place goes on taking changes that the new one does not have. */
function expectBothEnds(end: RaceEnd, point: Point, keepsBlobStore: boolean): void {
  expect([end.move, end.missingAtSource]).toEqual(['moved', []])
  // Where the abort is the last to take the bytes, at least nobody serves them at the new place.
  if (keepsBlobStore && point === 'bytes are owned') {
    expect(end.targetServes).toContain('the blob store belongs to another registry')
    return
  }
  expect(end.targetServes).toBe('yes')
  expect(end.missingAtTarget).toContain('ended')
  expect(end.sourceOwnsBlobs).toBe(!keepsBlobStore)
}

/** The start of a race: an image is there, and a server that goes on. */
async function startRace(from: Place) {
  const server = await serveIn(from)
  const images = new Images()
  await images.push(server, 'before')
  return { server, images }
}

for (const [kind, { need, keepsBlobStore, places }] of Object.entries(kinds)) {
  describe(`a move ${kind}`, () => {
    testNeeding(need, 'that is over is taken back by force alone, and never do both ends have the bytes', async () => {
      const [from, to] = await places()
      const { server, images } = await startRace(from)
      expect(await moveWith(from, to)).toBe('moved')

      expect(await wordOf(abortMove(configOf(from), false).then(() => 'aborted'))).toContain('--force, if nothing has')
      expect(await wordOf(images.push(server, 'refused').then(() => 'pushed'))).toContain('takes no changes')
      const { targetServes, missingAtTarget } = await lookAt(to, images)
      expect([targetServes, missingAtTarget]).toEqual(['yes', []])

      await abortMove(configOf(from), true)
      await images.push(server, 'after')
      expect([await images.findMissing(server), await ownsBlobs(from)]).toEqual([[], true])
      const copy = await lookAt(to, images)
      // A copy with bytes of its own can be started; whoever forces an abort is told not to.
      if (keepsBlobStore) expect(copy.targetServes).toContain('the blob store belongs to another registry')
      else expect(copy).toEqual({ targetServes: 'yes', missingAtTarget: ['after'] })
      await server.stop()
    })

    testNeeding(need, 'goes to an empty place after one that was aborted, with what came meanwhile', async () => {
      const [from, to] = await places()
      const { server, images } = await startRace(from)
      const gate = new Gate()
      const running = moveWith(
        from,
        to,
        'all',
        held('rows are in', gate, async () => undefined),
      )
      await gate.reached
      await abortMove(configOf(from), true)
      await images.push(server, 'after')
      gate.open()
      expect(await running).toContain('MoveAborted')

      expect(await moveWith(from, to)).toContain('the target is not empty')
      const [, other] = await places()
      const empty = keepsBlobStore ? { ...other, settings: { ...other.settings, ...bucketOf(from) } } : other
      expect(await moveWith(from, empty)).toBe('moved')
      await server.stop()
      expect(await lookAt(empty, images)).toEqual({ targetServes: 'yes', missingAtTarget: [] })
    })

    testNeeding(need, 'ends nowhere while it is being aborted, and the abort can be run again', async () => {
      const [from, to] = await places()
      const { server, images } = await startRace(from)
      const [gate, abortGate] = [new Gate(), new Gate()]
      const running = moveWith(
        from,
        to,
        'all',
        held('source is told', gate, async () => undefined),
      )
      await gate.reached
      const end = await openSource(configOf(from))
      const aborting = abortAt(afterTransaction(end, 1, abortGate.pass), true)
      await abortGate.reached
      gate.open()

      expect(await running).toContain('MoveAborted')
      expect(await wordOf(images.push(server, 'refused').then(() => 'pushed'))).toContain('takes no changes')
      expect(await moveWith(from, to)).toContain('the move is being aborted')
      // As if the first had died there.
      expect(await abortMove(configOf(from), false)).toMatchObject({ phase: 'moved', isAborted: true })
      await images.push(server, 'after')
      abortGate.open()
      await aborting
      await closeEnd(end)

      expect([await images.findMissing(server), await ownsBlobs(from)]).toEqual([[], true])
      expect((await lookAt(to, images)).targetServes).toContain('a registry is being moved to these stores')
      await server.stop()
    })

    testNeeding(need, 'is the only one, although another began before either took hold', async () => {
      const [from, to] = await places()
      const [, elsewhere] = await places()
      const other = keepsBlobStore
        ? { ...elsewhere, settings: { ...elsewhere.settings, ...bucketOf(from) } }
        : elsewhere
      const { server, images } = await startRace(from)
      await server.stop()

      const ends: string[] = []
      const meanwhile = async () => {
        ends.push(await moveWith(from, other))
      }
      ends.push(await moveWith(from, to, 'all', held('last bytes', openGate(), meanwhile)))

      expect(ends).toEqual(['moved', expect.stringContaining('the registry was moved to ')])
      expect(await lookAt(other, images)).toEqual({ targetServes: 'yes', missingAtTarget: [] })
      expect((await lookAt(to, images)).targetServes).toContain('a registry is being moved to these stores')
    })
  })
}

function openGate(): Gate {
  const gate = new Gate()
  gate.open()
  return gate
}
