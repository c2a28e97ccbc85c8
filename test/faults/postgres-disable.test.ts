// An account is disabled on PostgreSQL while many push to it through two servers: when that is answered, nothing of a push
// becomes visible any more, on either of them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describeNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { ask, manifestOfBlobs, pushBlob, putManifest } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { type PostgresServer, postgres, startPostgres } from '../support/postgres/postgres-server.ts'
import { freshPrefix, sharedS3 } from '../support/s3/test-s3.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { s3Variables } from '../support/stores/test-stores.ts'

const pushers = 6
/** CI makes 15 (MATRIX=all). */
const flips = process.env['MATRIX'] === 'all' ? 15 : 4
const temporaryFolder = useTemporaryFolders('postgres-disable')
const config = new TextEncoder().encode('{}')

let server: PostgresServer
let berths: readonly BerthProcess[] = []

/** What of manifests and tags there is to be seen. */
async function look(): Promise<string> {
  const [row] = await server.ask<{ seen: string }>(
    `SELECT (SELECT count(*) FROM manifests) || ' manifests, tags ' || coalesce(sum(version), 0) AS seen FROM tags`,
    'berth_1',
  )
  return row?.seen ?? ''
}

function disabling(): void {
  beforeAll(async () => {
    server = await startPostgres()
    const url = await server.newDatabase()
    const settings = {
      BERTH_METADATA__URL: url,
      BERTH_METADATA__CONNECTIONS: '6',
      BERTH_GARBAGE__EVERY: '0s',
      ...s3Variables(await sharedS3(), freshPrefix()),
    }
    const first = await startBerth({ dataDir: temporaryFolder(), settings })
    berths = [first, await startBerth({ dataDir: temporaryFolder(), settings })]
  })

  afterAll(async () => {
    for (const berth of berths) await berth.stop()
    await server.stop()
  })

  const of = (index: number) => berths[index % berths.length] ?? expect.unreachable()
  const switchTo = async (verb: 'enable' | 'disable', index: number) =>
    (await ask(of(index), 'POST', `/api/2023-12-28/${verb}`)).status

  /** All push until `act` is done; gives how they were answered, by status. */
  const underLoad = async (act: (statuses: ReadonlyMap<number, number>) => Promise<void>) => {
    for (let index = 0; index < pushers; index += 1) await pushBlob(of(0), `app/${index}`, config)
    const statuses = new Map<number, number>()
    let isOver = false
    const push = async (index: number) => {
      for (let round = 0; !isOver; round += 1) {
        const bytes = manifestOfBlobs(config, [], `${Bun.randomUUIDv7()} ${round}`)
        const { status } = await putManifest(of(index), `app/${index}`, 'latest', bytes)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    const pushing = Promise.all(Array.from({ length: pushers }, (_, index) => push(index)))
    await act(statuses).finally(() => {
      isOver = true
    })
    await pushing
    return statuses
  }

  /** What is seen now, and once so many more were answered so. */
  const lookAround = async (statuses: ReadonlyMap<number, number>, status: number) => {
    const seen = await look()
    const before = statuses.get(status) ?? 0
    await until(`${status} is answered`, () => (statuses.get(status) ?? 0) >= before + 2 * pushers)
    return [seen, await look()]
  }

  test(`nothing appears once it is answered, ${flips} times under load`, async () => {
    const late: string[] = []
    const statuses = await underLoad(async (answered) => {
      for (let flip = 0; flip < flips; flip += 1) {
        const pushed = answered.get(201) ?? 0
        await until('there are pushes', () => (answered.get(201) ?? 0) >= pushed + pushers)
        expect(await switchTo('disable', flip)).toBe(200)
        const [seen, after] = await lookAround(answered, 403)
        if (after !== seen) late.push(`${seen} -> ${after}`)
        expect(await switchTo('enable', flip)).toBe(200)
      }
    })

    console.log(`postgres disable: ${flips} times, answers`, statuses)
    expect(late).toEqual([])
    expect([...statuses.keys()].toSorted()).toEqual([201, 403])
  }, 60_000)

  test('control: a push to an enabled account becomes visible', async () => {
    await underLoad(async (answered) => {
      const [seen, after] = await lookAround(answered, 201)
      expect(after).not.toBe(seen)
    })
  })
}

describeNeeding(postgres, 'an account that is disabled while many push', disabling)
