// SIGTERM while the blob store no longer answers: the server does not wait long, and keeps what it has acknowledged.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import {
  checkBlob,
  completeUpload,
  expectStatus,
  openSession,
  patch,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { beginRequest } from '../support/clients/slow-request.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { freshPrefix } from '../support/s3/test-s3.ts'
import { type S3FaultProxy, startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { s3Variables } from '../support/stores/test-stores.ts'

const repository = 'stop/app'
const whole = generatedBytes(400_000, 1)
const temporaryFolder = useTemporaryFolders('shutdown-silent')
const stub = startS3Stub()
let proxy: S3FaultProxy
beforeAll(async () => {
  proxy = await startS3FaultProxy(stub.url)
})
afterAll(async () => {
  await proxy.stop()
  await stub.stop()
})

describe('SIGTERM while the blob store is silent', () => {
  // By the store's own times, one attempt would take ten minutes.
  test('ends with 0 all the same, and what was acknowledged can be continued', async () => {
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
  }, 60_000)
})
