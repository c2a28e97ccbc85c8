// SIGTERM: running requests come to their end or are cut with what they have, and the process ends well.
import { describe, expect, test } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import {
  checkBlob,
  completeUpload,
  expectStatus,
  openSession,
  patch,
  pushBlob,
  pushImage,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { beginDownload, beginRequest, openKeptConnection } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { auditStores } from '../support/stores/store-audit.ts'

const repository = 'stop/app'
const whole = generatedBytes(400_000, 1)
const temporaryFolder = useTemporaryFolders('shutdown')

function untilStopping(berth: BerthProcess): Promise<true> {
  return until<true>('it says that it is stopping', () => berth.output().includes('"msg":"stopping"'))
}

/** By the process's own clock, in milliseconds. */
function loggedAt(berth: BerthProcess, message: string): number {
  const line = berth.output().match(new RegExp(`^.*"msg":"${message}".*$`, 'm'))?.[0] ?? expect.unreachable()
  return Date.parse((JSON.parse(line) as { time: string }).time)
}

describe('SIGTERM', () => {
  test('ends an idle server with 0', async () => {
    const berth = await startBerth()

    expect(await berth.stop()).toBe(0)
  })

  test('lets an upload come to its end, which is acknowledged and kept', async () => {
    const dataDir = temporaryFolder()
    const berth = await startBerth({ dataDir })
    const session = await openSession(berth, repository)
    const request = await beginRequest(berth, 'PATCH', session, 'content-length', whole.length)
    await request.send(whole.subarray(0, 100_000))

    const stopped = berth.stop()
    await untilStopping(berth)
    await request.send(whole.subarray(100_000))

    expect(await request.status()).toBe(202)
    expect(await stopped).toBe(0)
    const again = await startBerth({ dataDir })
    expect(await receivedBytes(again, session)).toBe(whole.length)
    await completeUpload(again, session, whole)
    expect(await checkBlob(again, repository, digestOf(whole))).toBe('whole')
    expect(await again.stop()).toBe(0)
  })

  test('lets a closing PUT and a single POST come to their ends', async () => {
    const dataDir = temporaryFolder()
    const berth = await startBerth({ dataDir })
    const session = await openSession(berth, repository)
    const other = generatedBytes(300_000, 2)
    const paths = [`${session}?digest=${digestOf(whole)}`, `/v2/${repository}/blobs/uploads/?digest=${digestOf(other)}`]
    const put = await beginRequest(berth, 'PUT', paths[0] ?? '', 'content-length', whole.length)
    const post = await beginRequest(berth, 'POST', paths[1] ?? '', 'chunked', other.length)
    await Promise.all([put.send(whole.subarray(0, 10)), post.send(other.subarray(0, 10))])
    await Bun.sleep(50)

    const stopped = berth.stop()
    await untilStopping(berth)
    await Promise.all([put.send(whole.subarray(10)), post.send(other.subarray(10)).then(() => post.end())])

    expect([await put.status(), await post.status()]).toEqual([201, 201])
    expect(await stopped).toBe(0)
    const again = await startBerth({ dataDir })
    expect(await checkBlob(again, repository, digestOf(whole))).toBe('whole')
    expect(await checkBlob(again, repository, digestOf(other))).toBe('whole')
    await again.stop()
  })

  test('lets a download come to its end', async () => {
    const berth = await startBerth()
    const large = generatedBytes(16 * 1024 * 1024, 3)
    await pushBlob(berth, repository, large)
    const download = await beginDownload(berth, `/v2/${repository}/blobs/${digestOf(large)}`)
    await Bun.sleep(50)

    const stopped = berth.stop()
    await untilStopping(berth)
    const answer = await download.readToEnd()

    expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
    expect(await stopped).toBe(0)
  })

  test('cuts what goes on for longer than the drain time, and what came can be continued', async () => {
    const dataDir = temporaryFolder()
    const berth = await startBerth({ dataDir, settings: { BERTH_SERVER__DRAIN: '1s' } })
    const session = await openSession(berth, repository)
    await expectStatus(202, patch(berth, session, whole.subarray(0, 50_000)))
    const requests = await Promise.all([
      beginRequest(berth, 'PATCH', session, 'content-length', whole.length),
      beginRequest(berth, 'PUT', `/v2/${repository}/manifests/latest`, 'content-length', 1_000),
      beginRequest(berth, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digestOf(whole)}`, 'chunked', 0),
    ])
    await requests[0].send(whole.subarray(50_000, 150_000))
    await requests[2].send(whole.subarray(0, 1_000))
    await Bun.sleep(100)

    expect(await berth.stop()).toBe(0)

    expect(await auditStores(dataDir)).toEqual([])
    const again = await startBerth({ dataDir })
    expect(await receivedBytes(again, session)).toBe(150_000)
    await completeUpload(again, session, whole)
    expect(await checkBlob(again, repository, digestOf(whole))).toBe('whole')
    await again.stop()
    for (const request of requests) request.vanish()
  })

  test('is told by /readyz while all is still served, for as long as server.shutdown_delay says', async () => {
    const berth = await startBerth({ settings: { BERTH_SERVER__SHUTDOWN_DELAY: '2s' } })
    const probe = await openKeptConnection(berth)
    expect(await probe.get('/readyz')).toBe(200)

    const stopped = berth.stop()
    await untilStopping(berth)
    const asked = await fetch(`${berth.url}/readyz`)
    const askedOnKeptConnection = await probe.get('/readyz')
    const pushed = await pushImage(berth, repository, 'late', [whole])

    expect({ asked: asked.status, askedOnKeptConnection }).toEqual({ asked: 503, askedOnKeptConnection: 503 })
    expect(asked.headers.get('connection')).toBe('close')
    expect(await checkBlob(berth, repository, digestOf(whole))).toBe('whole')
    expect(pushed.digest).toStartWith('sha256:')
    probe.close()
    expect(await stopped).toBe(0)
    expect(loggedAt(berth, 'stopped') - loggedAt(berth, 'stopping')).toBeGreaterThanOrEqual(1_990)
  })

  test('refuses connections while requests still run: a balancer knows by that to ask another server', async () => {
    const berth = await startBerth()
    const session = await openSession(berth, repository)
    const idle = await openKeptConnection(berth)
    expect(await idle.get('/readyz')).toBe(200)
    const request = await beginRequest(berth, 'PATCH', session, 'content-length', whole.length)
    await request.send(whole.subarray(0, 1_000))
    await Bun.sleep(50)

    const stopped = berth.stop()
    await untilStopping(berth)
    const asked = await until('new connections are refused', () =>
      fetch(`${berth.url}/readyz`).then(
        () => false,
        (error: unknown) => Reflect.get(Object(error), 'code') as unknown,
      ),
    )
    const askedOnIdleConnection = await idle.get('/readyz')

    await request.send(whole.subarray(1_000))
    expect(await request.status()).toBe(202)
    expect(await stopped).toBe(0)
    idle.close()
    expect({ asked, askedOnIdleConnection }).toEqual({ asked: 'ECONNREFUSED', askedOnIdleConnection: 0 })
  })

  test('under a push load ends with 0, quietly, and leaves the stores sound', async () => {
    const dataDir = temporaryFolder()
    const berth = await startBerth({ dataDir })
    let isOver = false
    let pushed = 0
    const pushing = Array.from({ length: 4 }, async (_, client) => {
      while (!isOver) {
        const layer = generatedBytes(20_000, pushed * 10 + client)
        await pushImage(berth, repository, `client-${client}`, [layer]).then(
          () => {
            pushed += 1
          },
          () => Bun.sleep(1),
        )
      }
    })
    await Bun.sleep(500)

    const code = await berth.stop()
    isOver = true
    await Promise.all(pushing)

    expect(code).toBe(0)
    expect(pushed).toBeGreaterThan(0)
    const complaints = berth
      .output()
      .split('\n')
      .filter((line) => /"level":(40|50)/.test(line))
    expect(complaints).toEqual([])
    expect(await auditStores(dataDir)).toEqual([])
  })

  test('twice is no harm: the upload is kept, and a server on the same folder can start again', async () => {
    const dataDir = temporaryFolder()
    const berth = await startBerth({ dataDir, settings: { BERTH_SERVER__DRAIN: '1s' } })
    const session = await openSession(berth, repository)
    const request = await beginRequest(berth, 'PATCH', session, 'content-length', whole.length)
    await request.send(whole.subarray(0, 1_000))

    const stopped = berth.stop()
    await untilStopping(berth)
    process.kill(berth.pid, 'SIGTERM')
    await stopped

    const again = await startBerth({ dataDir })
    await completeUpload(again, session, whole)
    await again.stop()
    request.vanish()
  })
})

test('a second server on a folder that is being served does not start', async () => {
  const berth = await startBerth()

  const second = await startBerth({ dataDir: berth.dataDir }).catch(String)

  expect(String(second)).toContain('another Berth is serving this data folder')
  await berth.stop()
})
