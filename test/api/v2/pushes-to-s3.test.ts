// What the forms of a push cost in requests to S3, from the first to the last: each of them is paid for, and waited for.
import { afterAll, expect, test } from 'bun:test'
import { digestOf, generatedBytes } from '../../support/basics/generated-bytes.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  openSession,
  patch,
  pushBlob,
} from '../../support/clients/registry-client.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'
import { auditWrites } from '../../support/s3-faults/s3-audit.ts'
import { startTestServer } from '../../support/server/test-server.ts'
import { s3Variables } from '../../support/stores/test-stores.ts'

const mebi = 1024 ** 2
const stub = startS3Stub()
const server = await startTestServer(s3Variables(stub, 'berth/'))
const repository = 'pushes/app'
afterAll(async () => {
  await server.stop()
  await stub.stop()
})

/** `12 UploadPart` and the like, in the order of their first. */
async function costOf(act: () => Promise<unknown>): Promise<string[]> {
  const before = stub.requests().length
  await act()
  const requests = Map.groupBy(stub.requests().slice(before), ({ operation }) => String(operation))
  return [...requests].map(([operation, its]) => `${its.length} ${operation}`)
}

async function pushInChunks(whole: Uint8Array, sizes: readonly number[], last: Uint8Array): Promise<void> {
  const session = await openSession(server, repository)
  let at = 0
  for (const size of sizes) {
    await expectStatus(202, patch(server, session, whole.subarray(at, at + size)))
    at += size
  }
  await expectStatus(201, finish(server, session, digestOf(whole), last))
  expect(await checkBlob(server, repository, digestOf(whole))).toBe('whole')
}

const check = '1 GetObject'

test('a blob up to `storage.inline_bytes` needs no request, in one request or by PATCH and PUT', async () => {
  const [one, other] = [generatedBytes(16_384, 6), generatedBytes(16_384, 7)]

  expect(await costOf(() => pushBlob(server, repository, one))).toEqual([])
  expect(await costOf(() => pushInChunks(other, [6_000, 6_000], other.subarray(12_000)))).toEqual([])
})

test('a small blob in one request is one PUT', async () => {
  expect(await costOf(() => pushBlob(server, repository, generatedBytes(20_000, 1)))).toEqual(['1 PutObject'])
})

test('a small blob by PATCH and PUT, as docker sends it, is one PUT, and is not read again', async () => {
  const whole = generatedBytes(20_000, 2)

  expect(await costOf(() => pushInChunks(whole, [whole.length], new Uint8Array()))).toEqual(['1 PutObject', check])
})

test('a layer of 20 MiB in one request is begin, three parts, end and a look', async () => {
  const cost = await costOf(() => pushBlob(server, repository, generatedBytes(20 * mebi, 3)))

  expect(cost).toEqual(['1 CreateMultipartUpload', '3 UploadPart', '1 CompleteMultipartUpload', '1 HeadObject'])
})

test('a layer of 20 MiB by PATCH and PUT is the same and a tail that goes out and in once', async () => {
  const whole = generatedBytes(20 * mebi, 4)
  const cost = await costOf(() => pushInChunks(whole, [whole.length], new Uint8Array()))

  expect(cost.toSorted()).toEqual(
    [
      '1 CreateMultipartUpload',
      '3 UploadPart',
      '1 PutObject',
      '2 GetObject',
      '1 CompleteMultipartUpload',
      '1 HeadObject',
    ].toSorted(),
  )
})

test('a blob that the account has already is mounted for nothing', async () => {
  const whole = generatedBytes(10_000, 5)
  await pushBlob(server, repository, whole)
  const path = `/v2/pushes/other/blobs/uploads/?mount=${digestOf(whole)}&from=${repository}`

  expect(await costOf(() => expectStatus(201, ask(server, 'POST', path)))).toEqual([])
})

test('no name was written twice', () => {
  expect(auditWrites(stub.requests())).toEqual([])
})
