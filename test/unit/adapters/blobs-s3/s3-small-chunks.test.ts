// What it costs when a client adds a few bytes at a time to an upload that has megabytes behind its last part.
import { afterAll, describe, expect, test } from 'bun:test'
import { parseNotes } from '../../../../src/adapters/blobs-s3/upload-state.ts'
import { generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'
import { openS3Store, s3StoreSettings } from '../../../support/s3/s3-store.ts'
import { startS3Stub } from '../../../support/s3/s3-stub.ts'
import { tinyPlan } from '../../../support/s3-faults/s3-world.ts'
import { append, complete, emptyObject, freshKey, readAll } from '../../../support/stores/stored-objects.ts'

const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const store = openS3Store(s3StoreSettings(stub, useTemporaryFolders('small-chunks')(), { plan: tinyPlan }))
afterAll(async () => {
  await store.close()
  await stub.stop()
})

describe('a client that adds a few bytes at a time', () => {
  const first = generatedBytes(31_000, 1)

  async function putBytesOf(rounds: number, sizeOf: (round: number) => number) {
    const key = freshKey()
    let stands = await append(store, key, emptyObject, first)
    let whole: Uint8Array = first
    let tailsMax = 0
    const before = stub.requests().length
    for (let round = 0; round < rounds; round += 1) {
      const bytes = generatedBytes(sizeOf(round), round + 2)
      stands = await append(store, key, stands, bytes)
      whole = new Uint8Array(Buffer.concat([whole, bytes]))
      const sizes = parseNotes(stands.notes).tails.map((tail) => tail.sizeBytes)
      for (const [at, size] of sizes.entries()) expect(size).toBeGreaterThan(2 * (sizes[at + 1] ?? 0))
      tailsMax = Math.max(tailsMax, sizes.length)
    }
    const puts = stub
      .requests()
      .slice(before)
      .filter(({ operation }) => operation === 'PutObject')
    const { key: name } = await complete(store, key, stands)
    expect(await readAll(await store.open(name, whole.length))).toEqual(whole)
    return { putBytes: puts.reduce((sum, { headers }) => sum + Number(headers['content-length']), 0), tailsMax }
  }

  test('does not make the whole tail go to S3 again with each', async () => {
    const { putBytes, tailsMax } = await putBytesOf(200, () => 1)

    // Each byte a few times; the whole tail each time would be six millions.
    expect(putBytes).toBeLessThan(200 * 10)
    expect(tailsMax).toBeGreaterThan(2)
    expect(tailsMax).toBeLessThanOrEqual(16)
  })

  test('in chunks of any size leaves no more than a few tails, and the right bytes', async () => {
    const { putBytes } = await putBytesOf(60, (round) => (round % 3 === 0 ? 1 : (round * 7_919) % 900))

    expect(putBytes).toBeLessThan(60 * first.length * 0.2)
  })
})
