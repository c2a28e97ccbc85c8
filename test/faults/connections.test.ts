// More connections than the server may have. Without a limit it accepts them until no descriptor is left, and then spins.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { type BerthProcess, startBerth } from '../support/berth-process.ts'
import { digestOf, generatedBytes } from '../support/generated-bytes.ts'
import { ask, expectStatus, pushBlob } from '../support/registry-client.ts'
import { beginDownload } from '../support/slow-request.ts'
import { until } from '../support/until.ts'

const large = generatedBytes(16 * 1024 * 1024, 1)

let berth: BerthProcess

beforeAll(async () => {
  berth = await startBerth({ settings: { BERTH_SERVER__CONNECTIONS_MAX: '60' } })
})

afterAll(async () => {
  await berth.stop()
})

/** A connection that sends nothing; undefined when it is refused. */
function open(): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(berth.url).port), '127.0.0.1', () => resolve(socket))
    socket.on('error', () => resolve(undefined))
  })
}

test('too many connections are refused, what runs goes on, and new ones are served when others have ended', async () => {
  await pushBlob(berth, 'a/app', large)
  const download = await beginDownload(berth, `/v2/a/app/blobs/${digestOf(large)}`)
  const idle: Socket[] = []

  await until('a connection is refused', async () => {
    const more = await Promise.all(Array.from({ length: 20 }, open))
    idle.push(...more.filter((socket) => socket !== undefined))
    return more.includes(undefined)
  })

  const answer = await download.readToEnd()
  expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
  for (const socket of idle) socket.destroy()
  await until('the port is open again', async () => {
    const asked = ask(berth, 'GET', '/v2/', { headers: { connection: 'close' } })
    return asked.then(({ status }) => status === 200).catch(() => false)
  })
  await expectStatus(200, ask(berth, 'GET', '/v2/_catalog'))
  expect(berth.output().match(/too many connections/g)).toHaveLength(1)
})
