// Many requests on their way while the clocks part or the token ends: all are refused, and all are mended.
import { afterEach, describe, expect, test } from 'bun:test'
import { FixedCredentials, RenewedCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { CredentialSource } from '../../../../src/adapters/blobs-s3/request-sender.ts'
import type { S3Client } from '../../../../src/adapters/blobs-s3/s3-client.ts'
import { bodyOf, errorXml, openS3Client, s3ErrorOf, TestTime } from '../../../support/s3/s3-client.ts'
import type { S3Keys } from '../../../support/s3/s3-signature.ts'
import { type S3Stub, startS3Stub } from '../../../support/s3/s3-stub.ts'
import { startScriptedServer } from '../../../support/server/scripted-server.ts'

const hourMs = 3_600_000
const count = 40
/** The rest waits for a slot, and is signed when some were refused already. */
const requestsMax = 16
const names = Array.from({ length: count }, (_, number) => `many/${number}`)

let stub: S3Stub | undefined
afterEach(() => stub?.stop())

function openStub(keys?: S3Keys): S3Stub {
  stub = startS3Stub(keys === undefined ? {} : { keys })
  return stub
}

function clientOf({ url, region, bucket }: S3Stub, credentials: CredentialSource, time = new TestTime()): S3Client {
  return openS3Client(url, { region, bucket, credentials, requestsMax }, time)
}

const calls: readonly (readonly [string, (client: S3Client, name: string) => Promise<unknown>])[] = [
  ['PutObject', (client, name) => client.put(name, bodyOf('other bytes'))],
  ['HeadObject, which gets no reason', (client, name) => client.findSize(name)],
  ['DeleteObject', (client, name) => client.remove(name)],
  ['CreateMultipartUpload', (client, name) => client.createUpload(name)],
]

/** What the stub answered to the requests since, one status each. */
function statusesSince(server: S3Stub, before: number): number[] {
  return server
    .requests()
    .slice(before)
    .map(({ status }) => status)
}

describe.each(calls)('%s', (_, call) => {
  test.each([-2 * hourMs, 2 * hourMs])('many at once bear it that the clock of S3 goes off by %d ms', async (byMs) => {
    const server = openStub()
    const time = new TestTime()
    const client = clientOf(server, new FixedCredentials(server.accessKey, server.secretKey, undefined), time)
    for (const name of names) await client.put(name, bodyOf('bytes'))
    server.moveClock(byMs)
    const before = server.requests().length

    const all = await Promise.allSettled(names.map((name) => call(client, name)))

    expect(all.filter(({ status }) => status === 'rejected')).toEqual([])
    const refused = statusesSince(server, before).filter((status) => status === 403)
    // The control: it is about several. And each is mended by one more try, without a pause.
    expect(refused.length).toBeGreaterThan(1)
    const tries = Map.groupBy(server.requests().slice(before), ({ target }) => target)
    expect(Math.max(...[...tries.values()].map((of) => of.length))).toBe(2)
    expect(statusesSince(server, before).length).toBe(count + refused.length)
    expect(time.sleeps).toEqual([])
  })

  test('many at once bear it that their token ends, and one question gives them another', async () => {
    const server = openStub({ accessKey: 'A1', secretKey: 'S1', sessionToken: 'T1' })
    let asked = 0
    let now = Date.now()
    const source = new RenewedCredentials(
      async () => {
        asked += 1
        // As long as a question over the network, so that some are refused meanwhile, and some afterwards.
        await Bun.sleep(20)
        return {
          accessKeyId: `A${asked}`,
          secretAccessKey: `S${asked}`,
          sessionToken: `T${asked}`,
          expiresAt: undefined,
        }
      },
      () => now,
    )
    const client = clientOf(server, source)
    for (const name of names) await client.put(name, bodyOf('bytes'))
    now += 60_000
    server.changeKeys({ accessKey: 'A2', secretKey: 'S2', sessionToken: 'T2' })
    const before = server.requests().length

    const all = await Promise.allSettled(names.map((name) => call(client, name)))

    expect(all.filter(({ status }) => status === 'rejected')).toEqual([])
    expect(statusesSince(server, before).filter((status) => status === 400).length).toBeGreaterThan(1)
    expect(asked).toBe(2)
  })
})

describe('a machine whose clock is set right while a request is on its way', () => {
  test('signs that request again', async () => {
    const time = new TestTime()
    time.offsetMs = 2 * hourMs
    const server = await startScriptedServer()
    const date = () => new Date().toUTCString()
    server.follow((_, answer, nth) => {
      time.offsetMs = 0
      if (nth > 1) return answer.send(204, '', { date: date() })
      answer.send(403, errorXml('RequestTimeTooSkewed'), { date: date() })
    })

    await openS3Client(server.url, {}, time).remove('x')

    const stamps = server.requests.map(({ headers }) => headers['x-amz-date']?.slice(0, 11))
    expect(stamps.length).toBe(2)
    expect(stamps[0]).not.toBe(stamps[1])
    await server.stop()
  })

  test('does not sign again what was refused for its rights', async () => {
    const server = await startScriptedServer()
    server.follow((_, answer) => answer.send(403, errorXml('AccessDenied'), { date: new Date(0).toUTCString() }))

    expect((await s3ErrorOf(openS3Client(server.url).remove('x'))).code).toBe('AccessDenied')

    expect(server.requests.length).toBe(1)
    await server.stop()
  })
})
