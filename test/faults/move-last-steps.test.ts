// A move that is killed in one of its last steps: it can be ended, or taken back by whoever knows what that means.
import { describe, expect } from 'bun:test'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { killMoveAt } from '../support/moves/held-move-process.ts'
import { type Place, placeIn, placeOnServers, readAllRows, runMove } from '../support/moves/move-command.ts'
import { Images, lookAt, ownsBlobs, type Point, serveIn } from '../support/moves/move-race.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { freshPrefix, sharedS3, testS3Need } from '../support/s3/test-s3.ts'
import { s3Variables } from '../support/stores/test-stores.ts'

const newFolder = useTemporaryFolders('move-last-steps')

interface Kind {
  readonly need: Need
  places(): Promise<readonly [Place, Place]>
}

const kinds: Readonly<Record<string, Kind>> = {
  'from folder to folder': {
    need: { isMet: true, reason: '' },
    places: async () => [placeIn(newFolder()), placeIn(newFolder())],
  },
  'to PostgreSQL, with one bucket kept,': {
    need: postgres.isMet ? testS3Need() : postgres,
    async places() {
      const bucket = s3Variables(await sharedS3(), freshPrefix())
      const [from, to] = [placeIn(newFolder()), await placeOnServers(newFolder(), 'files')]
      return [
        { ...from, settings: { ...from.settings, ...bucket } },
        { ...to, settings: { ...to.settings, ...bucket } },
      ]
    },
  },
}

interface Step {
  /** Whether the target holds the rows then. */
  readonly hasRows: boolean
  /** What `--abort` says without `--force`. */
  readonly refusal: string
}

const rowsMayBeThere = 'all rows may be in'
const steps: Readonly<Partial<Record<Point, Step>>> = {
  'amid rows': { hasRows: false, refusal: rowsMayBeThere },
  'rows are in': { hasRows: true, refusal: rowsMayBeThere },
  'source is told': { hasRows: true, refusal: 'the registry was moved to' },
  'bytes are owned': { hasRows: true, refusal: 'the registry was moved to' },
}

const isBeingMoved = 'a registry is being moved to these stores'

function isPoint(text: string): text is Point {
  return text in steps
}

async function fill(place: Place): Promise<Images> {
  const [server, images] = [await serveIn(place), new Images()]
  await images.push(server, 'v1')
  await images.pushAgain(server, 'v2')
  await server.stop()
  return images
}

/** The rows are there or not, as the point says; and nobody begins to work on them. */
async function expectKilledAt({ hasRows }: Step, to: Place, images: Images): Promise<void> {
  const marks = (await readAllRows<{ name: string }>(to, 'SELECT name FROM marks')).map(({ name }) => name)
  expect([marks.includes('moved-from'), marks.includes('move-from')]).toEqual([hasRows, true])
  expect((await lookAt(to, images)).targetServes).toContain(isBeingMoved)
}

for (const [kind, { need, places }] of Object.entries(kinds)) {
  describe(`a move ${kind} that is killed`, () => {
    for (const [point, step] of Object.entries(steps)) {
      if (!isPoint(point)) continue
      testNeeding(need, `(${point}) is ended by running it again`, async () => {
        const [from, to] = await places()
        const images = await fill(from)
        await killMoveAt(point, from, to)
        await expectKilledAt(step, to, images)

        const { exitCode, stdout } = await runMove(from, to)

        const said = step.hasRows ? 'the registry was moved already' : 'moved 2 manifests, 2 tags, 2 blobs'
        expect([exitCode, stdout]).toEqual([0, expect.stringContaining(said)])
        expect(await lookAt(to, images)).toEqual({ targetServes: 'yes', missingAtTarget: [] })
      })

      testNeeding(need, `(${point}) is taken back by force alone, which says what that means`, async () => {
        const [from, to] = await places()
        const images = await fill(from)
        await killMoveAt(point, from, to)

        const refused = await runMove(from, undefined, '--abort')
        expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
        expect(refused.stderr).toContain(step.refusal)
        expect(refused.stderr).toContain('--force')
        const forced = await runMove(from, undefined, '--abort', '--force')

        expect([forced.exitCode, forced.stdout]).toEqual([0, 'the registry takes changes again\n'])
        expect(forced.stderr).toContain('start nothing on the copy in ')
        const server = await serveIn(from)
        await images.push(server, 'v3')
        expect(await images.findMissing(server)).toEqual([])
        await server.stop()
        expect(await ownsBlobs(from)).toBe(true)
        expect((await lookAt(to, images)).targetServes).toContain(isBeingMoved)
      })
    }

    testNeeding(need, 'before the rows is taken back without force (control)', async () => {
      const [from, to] = await places()
      const images = await fill(from)
      await killMoveAt('before rows', from, to)

      const { exitCode, stderr } = await runMove(from, undefined, '--abort')

      expect([exitCode, stderr]).toEqual([0, ''])
      const server = await serveIn(from)
      await images.push(server, 'v3')
      await server.stop()
      expect(await runMove(from, to)).toMatchObject({ exitCode: 0 })
      expect(await lookAt(to, images)).toEqual({ targetServes: 'yes', missingAtTarget: [] })
    })
  })
}
