// A blob far larger than the memory that it may take. CI sets LARGE_BLOB_BYTES to 5 GiB.
import { expect, test } from 'bun:test'
import { digestOfChunks, generatedChunks } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { useRunning } from '../support/basics/running.ts'
import { ask, expectStatus, finish, openSession } from '../support/clients/registry-client.ts'
import { startBerth } from '../support/server/berth-process.ts'

const mebibyte = 1024 * 1024
const sizeBytes = Number(process.env['LARGE_BLOB_BYTES'] ?? 384 * mebibyte)
const memoryMax = 200 * mebibyte
const timeoutMs = 30_000 + sizeBytes / 20_000

const berth = useRunning(() => startBerth())

function streamOf(chunks: Iterator<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    pull(controller) {
      const { done, value } = chunks.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}

test(
  `a blob of ${(sizeBytes / mebibyte).toFixed(0)} MiB goes up and down, and the server stays below 200 MiB`,
  async () => {
    const digest = digestOfChunks(generatedChunks(sizeBytes))
    const before = peakMemoryBytes(berth.pid)

    const session = await openSession(berth, 'large/app')
    await expectStatus(202, ask(berth, 'PATCH', session, { body: streamOf(generatedChunks(sizeBytes)) }))
    await expectStatus(201, finish(berth, session, digest))
    const up = peakMemoryBytes(berth.pid)

    const answer = await expectStatus(200, ask(berth, 'GET', `/v2/large/app/blobs/${digest}`))
    expect(answer.headers.get('content-length')).toBe(String(sizeBytes))
    const hasher = new Bun.CryptoHasher('sha256')
    for await (const chunk of answer.body ?? []) hasher.update(chunk)
    const down = peakMemoryBytes(berth.pid)

    const [idle, afterUp, afterDown] = [before, up, down].map((bytes) => (bytes / mebibyte).toFixed(0))
    console.log(
      `large blob: ${(sizeBytes / mebibyte).toFixed(0)} MiB; peak memory ${idle} MiB idle, ${afterUp} MiB up, ${afterDown} MiB down`,
    )
    expect(`sha256:${hasher.digest('hex')}`).toBe(digest)
    expect(down).toBeLessThan(memoryMax)
  },
  timeoutMs,
)
