// One replica's machine has a clock that is an hour wrong, either way, or is set while it works. The database's clock
// counts: nothing is lost early, and what one replica says of a time the other takes alike.
import { describe, expect } from 'bun:test'
import { join } from 'node:path'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  openSession,
  patch,
  pushBlob,
} from '../support/clients/registry-client.ts'
import { beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { checkAtBoth, type Replica, type Replicas, startReplicas } from '../support/replicas/replicas.ts'
import { growBlob, sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { bearing, identity, login, makeKey, me, scopedToken, statusWith } from './identity-requests.ts'

const hourMs = 3_600_000
const encode = (text: string) => new TextEncoder().encode(text)

/** Half an hour: shorter than the clock is wrong, and longer than the test lasts. */
const soon = {
  BERTH_GARBAGE__LEASE: '30m',
  BERTH_GARBAGE__UPLOAD_IDLE: '30m',
  BERTH_GARBAGE__QUARANTINE: '30m',
  // The bytes of an inline blob have no quarantine.
  BERTH_STORAGE__INLINE_BYTES: '0',
}

type Settings = Readonly<Record<string, string>>

/** The clock of A alone is what it says. */
async function withOddClock(settings: Settings, clock: Settings, body: (replicas: Replicas) => Promise<void>) {
  const preload = join(import.meta.dir, '../support/clocks/shifted-clock.ts')
  const settingsOfA = { BUN_OPTIONS: `--preload=${preload}`, ...clock }
  const replicas = await startReplicas({ settings, settingsOfA })
  try {
    await body(replicas)
  } finally {
    await replicas.stop()
  }
}

async function collectsAgain({ a, b }: Replicas): Promise<void> {
  for (const replica of [a, b]) {
    const count = () => replica.output().split('"msg":"garbage collected"').length
    const before = count()
    // The one that runs may have begun before what the test did.
    await until('it has collected twice more', () => count() >= before + 2)
  }
}

async function bytesStay(replicas: Replicas): Promise<void> {
  const { a, b, stores } = replicas
  const digests: string[] = []
  for (const at of [a, b]) digests.push(await pushBlob(at, 'clocks/app', encode(`by ${at.url}`)))
  const session = await openSession(a, 'clocks/app')
  await expectStatus(202, patch(b, session, encode('half'), 0))
  const lost = await pushBlob(a, 'clocks/app', encode('control'))
  await growBlob(stores, lost, hourMs)

  // The control: the collectors are at work, and what the database takes for old goes.
  await until('what is old is collected', async () => (await checkBlob(b, 'clocks/app', lost)) === 'status 404')
  await collectsAgain(replicas)

  for (const digest of digests) {
    expect(await checkAtBoth(replicas, 'clocks/app', digest)).toBe('whole')
  }
  await expectStatus(202, patch(a, session, encode(' and half'), 4))
  await expectStatus(201, finish(b, session, digestOf(encode('half and half'))))
  // What was collected keeps its bytes for as long as the quarantine says.
  expect(await stores.ask('SELECT 1 FROM trash')).toHaveLength(1)
}

async function timesAreOfAll({ a, b }: Replicas): Promise<void> {
  const expiresAt = new Date(Date.now() + hourMs / 2).toISOString()
  const keys: string[] = []
  const shortLived: string[] = []
  for (const [at, maker] of [a, b].entries()) {
    keys.push(await makeKey(maker, `key-${at}`, { expiresAt }))
    shortLived.push(await makeKey(maker, `short-${at}`, { expiresAt: new Date(Date.now() + 2_000).toISOString() }))
    const [scoped, access] = [await scopedToken(maker, 'clocks/app'), await login(maker)]
    for (const target of [a, b]) {
      expect(await statusWith(target, '/v2/clocks/app/tags/list', bearing(scoped))).toBe(200)
      expect(await statusWith(target, `${identity}/me`, bearing(access))).toBe(200)
    }
  }
  await Bun.sleep(2_500)
  for (const target of [a, b]) {
    expect(await Promise.all(keys.map((key) => me(target, key)))).toEqual([200, 200])
    expect(await Promise.all(shortLived.map((key) => me(target, key)))).toEqual([401, 401])
  }
}

describe.each([
  ['ahead', hourMs],
  ['behind', -hourMs],
])('a clock that is an hour %s', (_, shiftMs) => {
  testNeeding(sharedStoresNeed, 'loses nothing early, and ends no token or key before or after its time', async () => {
    const settings = { ...soon, BERTH_AUTH__CHALLENGE: 'bearer', BERTH_GARBAGE__EVERY: '100ms' }
    await withOddClock(settings, { CLOCK_SHIFT_MS: String(shiftMs) }, async (replicas) => {
      await bytesStay(replicas)
      await timesAreOfAll(replicas)
      // The control: the clock is wrong by what it should be.
      expect(Math.abs((loggedTimes(replicas.a).at(0) ?? 0) - Date.now() - shiftMs)).toBeLessThan(hourMs / 2)
    })
  })
})

/** When each line was logged, by the clock of that machine. */
function loggedTimes(replica: Replica): number[] {
  const lines = replica
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  return lines.map((line) => {
    const told: { time: string } = JSON.parse(line)
    return Date.parse(told.time)
  })
}

describe('a clock that is set back by an hour while a client sends', () => {
  testNeeding(sharedStoresNeed, 'makes no writer late: it keeps its turn by the time that goes by', async () => {
    await withOddClock({}, { CLOCK_JUMP_MS: String(-hourMs) }, async ({ a, b, stores }) => {
      const session = await openSession(a, 'clocks/app')
      const turnEnd = async (): Promise<number> => {
        const [row] = await stores.ask<{ ends: string }>('SELECT turn_until AS ends FROM uploads')
        return Number(row?.ends)
      }
      const request = await beginRequest(a, 'PATCH', session, 'chunked', 0)
      try {
        // Fast enough for twelve seconds of silence.
        const first = new Uint8Array(100_000)
        await request.send(first)
        await until('the turn is taken', async () => (await turnEnd()) > 0)
        const taken = await turnEnd()
        process.kill(a.pid, 'SIGUSR2')
        // The control: the machine believes it.
        const isSet = async (): Promise<boolean> => {
          await expectStatus(200, ask(a, 'GET', '/v2/'))
          return (loggedTimes(a).at(-1) ?? Date.now()) < Date.now() - hourMs / 2
        }
        await until('its clock is set back', isSet)

        await Bun.sleep(10_500)
        await request.send(encode('more'))

        await until('the turn is kept', async () => (await turnEnd()) > taken)
        await request.end()
        expect(await request.status()).toBe(202)
        const whole = Buffer.concat([first, encode('more')])
        await expectStatus(201, finish(b, session, digestOf(whole)))
      } finally {
        request.vanish()
      }
    })
  })
})
