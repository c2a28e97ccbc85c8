// Two replicas that write to one upload at the same moment, forced by holding one of them: one of the two wins, the other is
// told so, and what is acknowledged has the digest that it says.
import { describe, expect } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  openSession,
  patch,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { useGatedPair } from '../support/replicas/gated-replica.ts'
import { checkAtBoth } from '../support/replicas/replicas.ts'
import { endTurns } from '../support/replicas/shared-stores.ts'

const mebi = 1024 * 1024
const repository = 'races/uploads'
let serial = 0
const { pair, race } = useGatedPair({ mayLeaveOrphans: true })

/** Content that no other test has. */
function fresh(sizeBytes: number): Uint8Array {
  serial += 1
  return generatedBytes(sizeBytes, serial)
}

async function statusOf(request: Promise<Response>): Promise<number> {
  return (await request).status
}

async function wholeAtBoth(bytes: Uint8Array): Promise<void> {
  expect(await checkAtBoth(pair, repository, digestOf(bytes))).toBe('whole')
}

describe('I22: two PATCHes of one offset', () => {
  race('held: the second is refused while the first writes, and afterwards too', async () => {
    const bytes = fresh(1_000)
    const session = await openSession(pair.a, repository)
    const goOn = await pair.a.holdDuring('before writer.flush', () => patch(pair.a, session, bytes, 0))

    expect(await statusOf(patch(pair.b, session, bytes, 0))).toBe(416)
    expect(await statusOf(goOn())).toBe(202)

    const late = await patch(pair.b, session, bytes, 0)
    expect([late.status, late.headers.get('range')]).toEqual([416, '0-999'])
    expect(await statusOf(finish(pair.b, session, digestOf(bytes)))).toBe(201)
    await wholeAtBoth(bytes)
  })

  race('forty times at once: one is taken, the other refused, and the digest is right', async () => {
    for (let round = 0; round < 40; round += 1) {
      const [one, other] = [fresh(100), fresh(100)]
      const session = await openSession(round % 2 ? pair.a : pair.b, repository)
      const answers = await Promise.all([patch(pair.a, session, one, 0), patch(pair.b, session, other, 0)])

      const statuses = answers.map(({ status }) => status)
      expect(statuses.toSorted()).toEqual([202, 416])
      const taken = statuses[0] === 202 ? one : other
      expect(await statusOf(finish(pair.a, session, digestOf(taken)))).toBe(201)
      await wholeAtBoth(taken)
    }
  })
})

describe('I23: a writer that has lost its turn goes on', () => {
  const rows = [
    ['before writer.write', false],
    ['before writer.flush', false],
    ['before uploads.releaseTurn', false],
    ['before writer.flush', true],
  ] as const
  for (const [step, isClosed] of rows) {
    const successor = isClosed ? 'which has closed the upload' : 'which has written to it'
    race(`${step}: its bytes are ignored, and those of its successor stay, ${successor}`, async () => {
      const bytes = fresh(1_000)
      const session = await openSession(pair.a, repository)
      const goOn = await pair.a.holdDuring(step, () => patch(pair.a, session, fresh(700), 0))

      await endTurns(pair.stores)
      if (isClosed) await expectStatus(201, finish(pair.b, session, digestOf(bytes), bytes))
      else await expectStatus(202, patch(pair.b, session, bytes, 0))
      expect(await statusOf(goOn())).toBe(404)

      if (!isClosed) {
        expect(await receivedBytes(pair.a, session)).toBe(1_000)
        await expectStatus(201, finish(pair.a, session, digestOf(bytes)))
      }
      await wholeAtBoth(bytes)
    })
  }

  race('with a part of the same number: the upload is over, and a new one succeeds', async () => {
    const [start, end] = [fresh(8 * mebi), fresh(5 * mebi)]
    const whole = Buffer.concat([start, end])
    const session = await openSession(pair.a, repository)
    await expectStatus(202, patch(pair.a, session, start, 0))
    const goOn = await pair.a.holdDuring('before writer.flush', () =>
      patch(pair.a, session, fresh(5 * mebi), start.length),
    )

    await endTurns(pair.stores)
    await expectStatus(202, patch(pair.b, session, end, start.length))
    expect(await statusOf(goOn())).toBe(404)

    const closing = await finish(pair.b, session, digestOf(whole))
    expect([closing.status, await checkBlob(pair.a, repository, digestOf(whole))]).toEqual([404, 'status 404'])
    const again = await openSession(pair.b, repository)
    expect(await statusOf(finish(pair.a, again, digestOf(whole), whole))).toBe(201)
    await wholeAtBoth(whole)
  })
})

describe('I24: PATCH, PUT and DELETE at once', () => {
  const bytes = fresh(1_000)
  const sendPatch = (session: string) => patch(pair.a, session, bytes, 0)
  const sendPut = (session: string) => finish(pair.a, session, digestOf(bytes), bytes)
  /** The held request, the other one with its status, the status of the held one, and what is there in the end. */
  const rivals = [
    ['PATCH and PUT: the PUT is refused until the PATCH is done', sendPatch, 'PUT', 416, 202, 204],
    ['PATCH and DELETE: the upload is gone, and the PATCH is told so', sendPatch, 'DELETE', 204, 404, 404],
    ['PUT and DELETE: the DELETE comes first, and the PUT is told so', sendPut, 'DELETE', 204, 404, 404],
  ] as const
  for (const [title, send, method, otherStatus, heldStatus, sessionStatus] of rivals) {
    race(title, async () => {
      const session = await openSession(pair.a, repository)
      const step = send === sendPatch ? 'before writer.flush' : 'before uploads.commit'
      const goOn = await pair.a.holdDuring(step, () => send(session))
      const path = method === 'PUT' ? `${session}?digest=${digestOf(bytes)}` : session

      expect(await statusOf(ask(pair.b, method, path))).toBe(otherStatus)
      expect(await statusOf(goOn())).toBe(heldStatus)

      expect(await statusOf(ask(pair.b, 'GET', session))).toBe(sessionStatus)
      expect(await checkBlob(pair.b, repository, digestOf(bytes))).toBe('status 404')
    })
  }

  race('PUT and PUT: the second waits while the first is at work, and is told the same when it is done', async () => {
    const bytes = fresh(1_000)
    const session = await openSession(pair.a, repository)
    const goOn = await pair.a.holdDuring('before uploads.commit', () => finish(pair.a, session, digestOf(bytes), bytes))

    const second = statusOf(finish(pair.b, session, digestOf(bytes), bytes))
    expect(await statusOf(finish(pair.b, session, digestOf(fresh(1_000)), bytes))).toBe(416)
    expect(await Promise.race([second, Bun.sleep(700).then(() => 'it waits')])).toBe('it waits')
    expect(await statusOf(goOn())).toBe(201)

    expect(await second).toBe(201)
    expect(await statusOf(finish(pair.b, session, digestOf(bytes), bytes))).toBe(201)
    await wholeAtBoth(bytes)
  })

  race(
    'PUT and PUT: the replica of the first is killed, and the second continues when the turn of the first expires',
    async () => {
      const bytes = fresh(1_000)
      const session = await openSession(pair.a, repository)
      await pair.a.holdDuring('before uploads.commit', () => finish(pair.a, session, digestOf(bytes), bytes))
      const second = statusOf(finish(pair.b, session, digestOf(bytes), bytes))

      await pair.killA()
      await endTurns(pair.stores)

      expect(await second).toBe(201)
      await wholeAtBoth(bytes)
    },
  )

  for (const [size, words] of [
    [1_000, 'of one piece'],
    [5 * mebi, 'of several pieces'],
  ] as const) {
    race(`PUT and PUT, ${words}: the first has lost its turn, the second finishes, and the blob stays`, async () => {
      const [start, end] = [fresh(size === 1_000 ? size : 8 * mebi), fresh(size)]
      const whole = Buffer.concat([start, end])
      const session = await openSession(pair.a, repository)
      await expectStatus(202, patch(pair.b, session, start, 0))
      const goOn = await pair.a.holdDuring('before uploads.commit', () => finish(pair.a, session, digestOf(whole), end))

      await endTurns(pair.stores)
      expect(await statusOf(finish(pair.b, session, digestOf(whole), end))).toBe(201)
      expect(await statusOf(goOn())).toBe(404)
      expect(await statusOf(finish(pair.a, session, digestOf(whole), end))).toBe(201)

      await wholeAtBoth(whole)
    })
  }
})

describe('I25: an upload expires on one replica while the other writes to it', () => {
  race('the writer has its turn: the upload is not old', async () => {
    const bytes = fresh(1_000)
    const session = await openSession(pair.b, repository)
    const goOn = await pair.b.holdDuring('before writer.flush', () => patch(pair.b, session, bytes))

    await pair.a.collect({ uploadIdleMs: 0 })
    expect(await statusOf(goOn())).toBe(202)

    expect(await statusOf(finish(pair.a, session, digestOf(bytes)))).toBe(201)
    await wholeAtBoth(bytes)
  })

  race('the collector has it: the writer waits, and is told that it is gone', async () => {
    const session = await openSession(pair.b, repository)
    const goOn = await pair.a.holdDuring('after garbage.expireUploads', () => pair.a.collect({ uploadIdleMs: 0 }))

    const patching = patch(pair.b, session, fresh(1_000))
    await pair.somebodyWaits()

    expect([(await goOn()).uploads, (await patching).status]).toEqual([1, 404])
  })
})
