// Readers that stop are cut off. Readers and senders that are only slow, and take longer than the idle time, are served.
import { beforeAll, expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { freePorts } from '../support/basics/child-server.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import { openSession, pushBlob } from '../support/clients/registry-client.ts'
import { type BodyForm, beginDownload, beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { startTestServer, type TestServer } from '../support/server/test-server.ts'

const repository = 'slow/app'
const forms: readonly BodyForm[] = ['content-length', 'chunked']

// More than the buffers of both sockets hold, so that the server has to wait for the reader.
const large = generatedBytes(32 * 1024 * 1024, 8)
const path = `/v2/${repository}/blobs/${digestOf(large)}`

const impatient = useRunning(() => startTestServer({ BERTH_LIMITS__BODY_WINDOW: '1s', BERTH_SERVER__IDLE: '8s' }))

beforeAll(() => pushBlob(impatient, repository, large))

test('a reader that stops is cut off, and its file is closed', async () => {
  const download = await beginDownload(impatient, path)
  await until('the file is being sent', () => openBlobFiles(impatient) > 0)

  await until('the file is let go', () => openBlobFiles(impatient) === 0)

  expect((await download.readToEnd()).length).toBeLessThan(large.length)
})

test('a reader that stops is cut off although a client at another address uses the same port', async () => {
  const [localPort = 0] = await freePorts(1)
  const stopped = await beginDownload(impatient, path, { localAddress: '127.0.0.2', localPort })
  await until('the file is being sent', () => openBlobFiles(impatient) > 0)
  const healthy = await beginDownload(impatient, path, { localAddress: '127.0.0.3', localPort })
  expect((await healthy.readToEnd()).length).toBeGreaterThan(large.length)

  await until('the file is let go', () => openBlobFiles(impatient) === 0)

  expect((await stopped.readToEnd()).length).toBeLessThan(large.length)
})

test('a reader that only pauses gets it all', async () => {
  const download = await beginDownload(impatient, path)
  await Bun.sleep(500)

  const answer = await download.readToEnd()

  expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
})

test.concurrent('a reader that is slow, but goes on, gets it all, however much longer that takes', async () => {
  const download = await beginDownload(impatient, path)

  const answer = await download.readToEnd({ bytesPerSecond: 3_800_000 })

  expect(answer.length).toBeGreaterThan(large.length)
  expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
})

test.concurrent.each(forms)(
  'a sender that is slow, but goes on, can send its whole body, however long that takes, %s',
  async (form) => {
    const bytes = generatedBytes(90_000, 9)
    const session = await openSession(impatient, repository)
    const request = await beginRequest(impatient, 'PATCH', session, form, bytes.length)

    for (let at = 0; at < bytes.length; at += 1_000) {
      await request.send(bytes.subarray(at, at + 1_000))
      await Bun.sleep(100)
    }
    if (form === 'chunked') await request.end()

    expect(await request.status()).toBe(202)
  },
)

/** Files of blobs that this process, the server's, holds open. */
function openBlobFiles({ dataDir }: TestServer): number {
  const targets = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      // Closed between the listing and the look.
      return ''
    }
  })
  return targets.filter((target) => target.includes(`${dataDir}/blobs/`)).length
}
