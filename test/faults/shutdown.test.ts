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
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { freshPrefix } from '../support/s3/test-s3.ts'
import { startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { auditStores } from '../support/stores/store-audit.ts'
import { s3Variables } from '../support/stores/test-stores.ts'

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

  test('lets uploads and a download come to their ends, which are acknowledged and kept', async () => {
    const dataDir = temporaryFolder()
    const berth = await startBerth({ dataDir })
    const large = generatedBytes(16 * 1024 * 1024, 3)
    await pushBlob(berth, repository, large)
    const bodies = [whole, generatedBytes(300_000, 2), generatedBytes(300_000, 4)] as const
    const [patched, closed] = [await openSession(berth, repository), await openSession(berth, repository)]
    const [patchRequest, put, post] = await Promise.all([
      beginRequest(berth, 'PATCH', patched, 'content-length', bodies[0].length),
      beginRequest(berth, 'PUT', `${closed}?digest=${digestOf(bodies[1])}`, 'content-length', bodies[1].length),
      beginRequest(berth, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digestOf(bodies[2])}`, 'chunked', 0),
    ])
    const requests = [patchRequest, put, post]
    for (const [at, request] of requests.entries()) await request.send(bodies[at]?.subarray(0, 10) ?? whole)
    const download = await beginDownload(berth, `/v2/${repository}/blobs/${digestOf(large)}`)
    await Bun.sleep(50)

    const stopped = berth.stop()
    await untilStopping(berth)
    for (const [at, request] of requests.entries()) await request.send(bodies[at]?.subarray(10) ?? whole)
    await post.end()
    const answer = await download.readToEnd()

    expect(await Promise.all(requests.map((request) => request.status()))).toEqual([202, 201, 201])
    expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
    expect(await stopped).toBe(0)
    const again = await startBerth({ dataDir })
    expect(await receivedBytes(again, patched)).toBe(whole.length)
    await completeUpload(again, patched, whole)
    for (const bytes of bodies) expect(await checkBlob(again, repository, digestOf(bytes))).toBe('whole')
    expect(await again.stop()).toBe(0)
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

  // By the store's own times, one attempt would take ten minutes.
  test('while the blob store is silent ends with 0, and what was acknowledged can be continued', async () => {
    const stub = startS3Stub()
    const proxy = await startS3FaultProxy(stub.url)
    const dataDir = temporaryFolder()
    const settings = {
      ...s3Variables({ ...stub, url: proxy.url }, freshPrefix()),
      BERTH_SERVER__DRAIN: '1s',
      BERTH_STORAGE__S3__TIMEOUT: '10m',
    }
    const berth = await startBerth({ dataDir, settings })
    const session = await openSession(berth, repository)
    await expectStatus(202, patch(berth, session, whole.subarray(0, 100_000)))
    const request = await beginRequest(berth, 'PATCH', session, 'content-length', whole.length - 100_000)
    await request.send(whole.subarray(100_000, 200_000))
    const silence = proxy.inject({ fault: 'timeout before effect' })

    expect(await berth.stop()).toBe(0)

    expect(silence.hits()).toBeGreaterThan(0)
    expect(berth.output()).toContain('"msg":"stopped"')
    request.vanish()
    proxy.clear()
    const again = await startBerth({ dataDir, settings })
    expect(await receivedBytes(again, session)).toBe(100_000)
    await completeUpload(again, session, whole)
    expect(await checkBlob(again, repository, digestOf(whole))).toBe('whole')
    await again.stop()
    await proxy.stop()
    await stub.stop()
  }, 60_000)
})
