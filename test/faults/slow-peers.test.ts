// Peers that stop or crawl are cut off; peers that are only slow are not.
import { beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { freePorts } from '../support/basics/child-server.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import { checkBlob, completeUpload, openSession, pushBlob, receivedBytes } from '../support/clients/registry-client.ts'
import { type BodyForm, beginDownload, beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { startTestServer, type TestServer } from '../support/server/test-server.ts'
import { countRows } from '../support/stores/store-audit.ts'

const repository = 'slow/app'
const forms: BodyForm[] = ['content-length', 'chunked']
const whole = generatedBytes(300_000, 1)

const idle = 'BERTH_SERVER__IDLE'

const server = useRunning(() => startTestServer({ BERTH_LIMITS__BODY_WINDOW: '1s', [idle]: '30s' }))

describe.each(forms)('a sender, %s', (form) => {
  test.concurrent('that stops is told 408, and the session keeps what came', async () => {
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PATCH', session, form, whole.length)
    await request.send(whole.subarray(0, 100_000))

    expect(await request.status()).toBe(408)
    expect(await receivedBytes(server, session)).toBe(100_000)
    await completeUpload(server, session, whole)
    expect(await checkBlob(server, repository, digestOf(whole))).toBe('whole')
  })

  test.concurrent('that never begins is told 408, and the session stays empty', async () => {
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PATCH', session, form, whole.length)

    expect(await request.status()).toBe(408)
    expect(await receivedBytes(server, session)).toBe(0)
  })

  test.concurrent('that stops in the middle of a closing PUT is told 408, and the session stands where it stood', async () => {
    const bytes = generatedBytes(200_000, form === 'chunked' ? 2 : 3)
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PUT', `${session}?digest=${digestOf(bytes)}`, form, bytes.length)
    await request.send(bytes.subarray(0, 100_000))

    expect(await request.status()).toBe(408)
    expect(await receivedBytes(server, session)).toBe(0)
    await completeUpload(server, session, bytes)
  })

  test.concurrent('that stops in the middle of a single POST is told 408, and nothing is left open', async () => {
    const bytes = generatedBytes(200_000, form === 'chunked' ? 4 : 5)
    const path = `/v2/alone/${form}/blobs/uploads/?digest=${digestOf(bytes)}`
    const request = await beginRequest(server, 'POST', path, form, bytes.length)
    await request.send(bytes.subarray(0, 100_000))

    expect(await request.status()).toBe(408)
    const repositoryId = `(SELECT id FROM repositories WHERE name = 'alone/${form}')`
    expect(countRows(server.dataDir, 'uploads', `repository_id = ${repositoryId}`)).toBe(0)
  })

  test.concurrent('that stops in the middle of a manifest is told 408', async () => {
    const request = await beginRequest(server, 'PUT', `/v2/${repository}/manifests/latest`, form, 1_000)
    await request.send(new TextEncoder().encode('{"schemaVersion": 2,'))

    expect(await request.status()).toBe(408)
  })

  test.concurrent('that trickles below the pace is told 408, and the session keeps what came', async () => {
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PATCH', session, form, whole.length)
    let isAnswered = false
    const status = request.status().finally(() => {
      isAnswered = true
    })

    let sent = 0
    while (!isAnswered) {
      await request.send(whole.subarray(sent, sent + 10))
      sent += 10
      await Bun.sleep(50)
    }

    expect(await status).toBe(408)
    const received = await receivedBytes(server, session)
    expect(received).toBeGreaterThan(0)
    expect(received).toBeLessThanOrEqual(sent)
    await completeUpload(server, session, whole)
  })

  test.concurrent('that is slow, but above the minimum rate, can send its whole body', async () => {
    const bytes = generatedBytes(60_000, 6)
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PATCH', session, form, bytes.length)

    for (let at = 0; at < bytes.length; at += 1_000) {
      await request.send(bytes.subarray(at, at + 1_000))
      await Bun.sleep(50)
    }
    if (form === 'chunked') await request.end()

    expect(await request.status()).toBe(202)
    expect(await receivedBytes(server, session)).toBe(bytes.length)
  })
})

describe('with a short idle time', () => {
  // More than the buffers of both sockets hold, so that the server has to wait for the reader.
  const large = generatedBytes(32 * 1024 * 1024, 8)
  const path = `/v2/${repository}/blobs/${digestOf(large)}`

  const impatient = useRunning(() => startTestServer({ BERTH_LIMITS__BODY_WINDOW: '1s', [idle]: '8s' }))

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

    const answer = await download.readToEnd({ bytesPerSecond: 3_000_000 })

    expect(answer.length).toBeGreaterThan(large.length)
    expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
  })

  test.concurrent.each(forms)(
    'a sender that is slow, but goes on, can send its whole body, however long that takes, %s',
    async (form) => {
      const bytes = generatedBytes(110_000, 9)
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
})

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
