// A move that is killed or aborted at each of its points. Afterwards one place accepts changes, never both, and that place has
// every image whose push was acknowledged.
import { describe, expect, test } from 'bun:test'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { type Place, placeIn, placeOnServers } from '../support/moves/move-command.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { freshPrefix, sharedS3, testS3Need } from '../support/s3/test-s3.ts'
import { s3Variables } from '../support/stores/test-stores.ts'
import { abort, Images, move, type Point, pushAt, serve } from './stepped-move.ts'

const newFolder = useTemporaryFolders('move-steps')

/** CI stops each kind of move at all points at which it differs (MATRIX=all). A move between folders is stopped at every point. */
const isWhole = process.env['MATRIX'] === 'all'

interface Kind {
  readonly need: Need
  readonly keepsBlobStore: boolean
  /** Those at which this kind differs from the kinds before it. */
  readonly points: readonly Point[]
  readonly hasControls: boolean
  /** The places of one registry: one that it is in, and any number of others. */
  places(): Promise<{ readonly from: Place; readonly other: () => Promise<Place> }>
}

async function inBucket(prefix: string): Promise<Place> {
  const place = placeIn(newFolder())
  return { ...place, settings: { ...place.settings, ...s3Variables(await sharedS3(), prefix) } }
}

const kinds: Readonly<Record<string, Kind>> = {
  'from folder to folder': {
    need: { isMet: true, reason: '' },
    keepsBlobStore: false,
    points: ['reserve', 'copy', 'start', 'copy rest', 'copy rows', 'amid rows', 'confirm', 'release'],
    hasControls: true,
    places: async () => ({ from: placeIn(newFolder()), other: async () => placeIn(newFolder()) }),
  },
  'that keeps its bucket': {
    need: testS3Need(),
    keepsBlobStore: true,
    points: isWhole ? ['start', 'copy rows', 'amid rows', 'confirm', 'hand over', 'release'] : ['confirm', 'hand over'],
    hasControls: true,
    async places() {
      const prefix = freshPrefix()
      return { from: await inBucket(prefix), other: () => inBucket(prefix) }
    },
  },
  'to PostgreSQL that keeps its files': {
    need: postgres,
    keepsBlobStore: true,
    points: isWhole ? ['amid rows', 'confirm', 'hand over'] : ['amid rows'],
    hasControls: false,
    async places() {
      const folder = newFolder()
      return { from: placeIn(folder), other: () => placeOnServers(folder, 'files') }
    },
  },
}

/** Where the move is at a point, by its marks. */
type State = 'not started' | 'started' | 'confirmed'

interface Row {
  readonly point: Point
  readonly state: State
}

const rows: readonly Row[] = [
  { point: 'reserve', state: 'not started' },
  { point: 'copy', state: 'not started' },
  { point: 'start', state: 'not started' },
  { point: 'copy rest', state: 'started' },
  { point: 'copy rows', state: 'started' },
  { point: 'amid rows', state: 'started' },
  { point: 'confirm', state: 'started' },
  { point: 'hand over', state: 'confirmed' },
  { point: 'release', state: 'confirmed' },
]

const notFinished = expect.stringContaining('a registry is being moved to these stores')
const sourceIsOpen = { source: { outcome: 'pushed', missing: [] }, target: { outcome: notFinished, missing: [] } }

/** With a blob store of its own, the source still answers pulls. */
function targetIsOpen({ keepsBlobStore }: Kind) {
  const refusal = keepsBlobStore ? 'the blob store belongs to another registry' : 'accepts no changes'
  const source = { outcome: expect.stringContaining(refusal), missing: [] }
  return { source, target: { outcome: 'pushed', missing: [] } }
}

/** Which place accepts changes. */
async function lookAtBoth(from: Place, to: Place, images: Images) {
  return { source: await pushAt(from, images, 'at-the-source'), target: await pushAt(to, images, 'at-the-target') }
}

async function startWithImage(from: Place): Promise<Images> {
  const images = new Images()
  expect(await pushAt(from, images, 'before')).toEqual({ outcome: 'pushed', missing: [] })
  return images
}

/** As far as the stores can tell, the process ends at the point: nothing is cleaned up. */
function killedAt(point: Point) {
  return async (here: Point) => {
    if (here === point) throw new Error('killed')
  }
}

for (const [kindName, kind] of Object.entries(kinds)) {
  describe(`a move ${kindName}`, () => {
    for (const { point, state } of rows.filter(({ point }) => kind.points.includes(point))) {
      testNeeding(kind.need, `that is killed at "${point}" is finished by running it again`, async () => {
        const { from, other } = await kind.places()
        const [to, images] = [await other(), await startWithImage(from)]
        expect(await move(from, to, { at: killedAt(point) })).toBe('Error: killed')
        if (state === 'not started') await pushAt(from, images, 'meanwhile')

        const hasRows = point === 'confirm' || state === 'confirmed'
        expect(await move(from, to)).toBe(hasRows ? 'moved already' : 'moved')

        expect(await lookAtBoth(from, to, images)).toEqual(targetIsOpen(kind))
        expect(await move(from, to)).toBe('moved already')
      })

      testNeeding(kind.need, `that is aborted at "${point}" while it runs leaves one place open`, async () => {
        const { from, other } = await kind.places()
        expect(await raceAbort(from, await other(), point)).toEqual(
          state === 'started'
            ? { aborted: 'aborted', move: expect.stringContaining('MoveAborted'), ...sourceIsOpen }
            : {
                aborted: state === 'confirmed' ? expect.stringContaining('the registry was moved') : 'nothing to abort',
                move: 'moved',
                ...targetIsOpen(kind),
              },
        )
      })

      if (state !== 'started' || !kind.hasControls) continue
      testNeeding(
        kind.need,
        `that is aborted at "${point}" would lose pushes without its guards (control)`,
        async () => {
          const { from, other } = await kind.places()

          const end = await raceAbort(from, await other(), point, false)

          // Both commands say that they succeeded. Where both places have their own blobs, both accept changes.
          expect([end.aborted, end.move, end.target.outcome]).toEqual(['aborted', 'moved', 'pushed'])
          if (!kind.keepsBlobStore) expect(end.source.outcome).toBe('pushed')
          const isAfterSnapshot = point === 'amid rows' || point === 'confirm'
          expect(end.target.missing.includes('when-aborted')).toBe(isAfterSnapshot)
        },
      )
    }

    testNeeding(kind.need, 'that is finished can be taken back by force if the blobs were copied', async () => {
      const { from, other } = await kind.places()
      const [to, images] = [await other(), await startWithImage(from)]
      expect(await move(from, to)).toBe('moved')

      expect(await abort(from)).toContain('the registry was moved to ')
      const forced = await abort(from, true)

      if (kind.keepsBlobStore) {
        expect(forced).toContain('both places use the same blob store')
        expect(await lookAtBoth(from, to, images)).toEqual(targetIsOpen(kind))
      } else {
        expect(forced).toBe('aborted')
        // A copy with blobs of its own can be started. `--force` warns of it.
        expect(await lookAtBoth(from, to, images)).toEqual({
          source: { outcome: 'pushed', missing: [] },
          target: { outcome: 'pushed', missing: ['at-the-source'] },
        })
      }
    })

    testNeeding(kind.need, 'goes to an empty target after an abort, not to the aborted copy', async () => {
      const { from, other } = await kind.places()
      const [copy, empty, images] = [await other(), await other(), await startWithImage(from)]
      expect(await move(from, copy, { at: killedAt('confirm') })).toBe('Error: killed')
      expect(await abort(from)).toBe('aborted')
      await pushAt(from, images, 'after-the-abort')

      expect(await move(from, copy)).toContain('the target is not empty')
      expect(await move(from, empty)).toBe('moved')

      expect(await lookAtBoth(from, empty, images)).toEqual(targetIsOpen(kind))
      expect((await pushAt(copy, images, 'at-the-copy')).outcome).toEqual(notFinished)
    })

    testNeeding(kind.need, 'that was aborted cannot confirm the move that was started after it', async () => {
      const { from, other } = await kind.places()
      const [copy, next, images] = [await other(), await other(), await startWithImage(from)]
      const at = async (point: Point) => {
        if (point !== 'confirm') return
        expect(await abort(from)).toBe('aborted')
        expect((await pushAt(from, images, 'between')).outcome).toBe('pushed')
        expect(await move(from, next, { at: killedAt('copy rows') })).toBe('Error: killed')
      }

      expect(await move(from, copy, { at })).toContain('MoveAborted')
      expect(await move(from, await other())).toContain('the registry is being moved to ')
      expect(await move(from, next)).toBe('moved')

      expect(await lookAtBoth(from, next, images)).toEqual(targetIsOpen(kind))
    })

    testNeeding(kind.need, 'wins alone against a move to another target', async () => {
      const { from, other } = await kind.places()
      const [to, winner, images] = [await other(), await other(), await startWithImage(from)]
      const outcomes: string[] = []
      const at = async (point: Point) => {
        if (point === 'start') outcomes.push(await move(from, winner))
      }
      outcomes.push(await move(from, to, { at }))

      expect(outcomes).toEqual(['moved', expect.stringContaining('the registry was moved to ')])
      expect(await lookAtBoth(from, winner, images)).toEqual(targetIsOpen(kind))
      expect((await pushAt(to, images, 'at-the-loser')).outcome).toEqual(notFinished)
    })
  })
}

/** Another process aborts at the point, and a client pushes before the move continues. */
async function raceAbort(from: Place, to: Place, point: Point, isGuarded = true) {
  const images = await startWithImage(from)
  const server = await serve(from)
  let aborted = 'never at the point'
  const at = async (here: Point) => {
    if (here !== point) return
    aborted = await abort(from)
    if (aborted === 'aborted' || aborted === 'nothing to abort') await images.pushManifest(server, 'when-aborted')
  }
  const outcome = await move(from, to, { at, isGuarded })
  await server.stop()
  return { aborted, move: outcome, ...(await lookAtBoth(from, to, images)) }
}

test('a move that an older version has started is neither continued nor aborted', async () => {
  const [from, to] = [placeIn(newFolder()), placeIn(newFolder())]
  await startWithImage(from)
  const phase = { move: 'm', to: 't', place: 'elsewhere', keepsBlobStore: false, phase: 'bytes', isAborted: false }
  const database = from.look()
  await database.run("INSERT INTO marks (name, value) VALUES ('read-only', $1)", [JSON.stringify(phase)])
  await database.close()

  const refusal = expect.stringContaining(
    "an older version of Berth has started a move to elsewhere: run that version's",
  )
  expect([await move(from, to), await abort(from), await abort(from, true)]).toEqual([refusal, refusal, refusal])
})
