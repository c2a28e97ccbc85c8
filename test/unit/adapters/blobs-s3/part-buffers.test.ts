import { heapStats } from 'bun:jsc'
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import {
  FilePartBuffer,
  MemoryPartBuffer,
  type PartBuffer,
  PartBufferPool,
  type PartBufferSettings,
} from '../../../../src/adapters/blobs-s3/part-buffers.ts'
import { type Checksum, sizeOfBody, toRequestBody } from '../../../../src/adapters/blobs-s3/s3-request.ts'
import { RegistryRefusal, Unavailable } from '../../../../src/oci/errors.ts'
import type { DiskSpace } from '../../../../src/ports/disk-space.ts'
import { generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('buffers')
const large = 200_000
const small = 60_000

function openPool(more: Partial<PartBufferSettings> = {}): PartBufferPool {
  const plan = { steps: [{ parts: 10_000, sizeBytes: 8_000_000 }], minBytes: 1, memoryMax: 8_000_000 }
  return new PartBufferPool({
    plan,
    checksum: 'none',
    memoryBuffersMax: 2,
    queueMax: 1_000,
    waitMaxMs: 60_000,
    folder: temporaryFolder(),
    ...more,
  })
}

async function bytesIn(buffer: PartBuffer): Promise<Uint8Array> {
  return new Uint8Array(await new Response(new Blob([buffer.body().bytes])).arrayBuffer())
}

async function openThree(pool: PartBufferPool): Promise<[PartBuffer, PartBuffer, PartBuffer]> {
  return [await pool.open(0, 1), await pool.open(0, 2), await pool.open(0, 3)]
}

/** Whether it is done once everything that can be done has been done. */
async function isDone(work: Promise<unknown>): Promise<boolean> {
  let done = false
  void work.then(
    () => {
      done = true
    },
    () => undefined,
  )
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
  return done
}

describe('a buffer in a file', () => {
  test('stops at the reserve of the disk, and releases what it has reserved', async () => {
    let left = 150_000
    const disk: DiskSpace = {
      isLow: () => left <= 0,
      isVeryLow: () => false,
      reserve: (bytes) => {
        if (bytes > left) throw new RegistryRefusal('disk-low')
        left -= bytes
      },
      release: (bytes) => {
        left += bytes
      },
    }
    const plan = { steps: [{ parts: 10_000, sizeBytes: 8_000_000 }], minBytes: 1, memoryMax: 0 }
    const pool = openPool({ plan, disk })
    const buffer = await pool.open(0, 1)

    await pool.append(buffer, generatedBytes(100_000, 1))
    expect(await errorOf(pool.append(buffer, generatedBytes(200_000, 2)))).toBeInstanceOf(Unavailable)
    await pool.append(buffer, generatedBytes(100_000, 3))

    expect([buffer.sizeBytes, left]).toEqual([200_000, 150_000])
    await pool.close(buffer)
  })
})

describe('the pool of part buffers', () => {
  test('has no more buffers in memory than allowed, and every writer gets one in the end', async () => {
    const writers = fc.array(fc.array(fc.constantFrom(1_000, small, large, 3 * large), { maxLength: 6 }), {
      minLength: 3,
      maxLength: 12,
    })
    await fc.assert(
      fc.asyncProperty(writers, fc.integer({ min: 1, max: 4 }), async (works, memoryBuffersMax) => {
        const pool = openPool({ memoryBuffersMax })
        let held = 0
        let most = 0
        const write = async (sizes: readonly number[]): Promise<void> => {
          const travelling: Promise<void>[] = []
          for (const [index, size] of sizes.entries()) {
            const buffer = await pool.open(0, index + 1)
            await pool.append(buffer, new Uint8Array(size))
            const isHeld = size > 64 * 1024
            if (isHeld) held += 1
            most = Math.max(most, held)
            // On its way to the store, while the next buffer is gathered.
            const sent = new Promise(setImmediate).then(() => {
              if (isHeld) held -= 1
              return pool.close(buffer)
            })
            travelling.push(sent)
          }
          await Promise.all(travelling)
        }
        await Promise.all(works.map(write))

        expect(most).toBeLessThanOrEqual(memoryBuffersMax)
      }),
      { numRuns: 100 },
    )
  })

  test('accepts small buffers while it is full, and lets larger ones wait', async () => {
    const pool = openPool()
    const [one, other, third] = await openThree(pool)
    await pool.append(one, new Uint8Array(large))
    await pool.append(other, new Uint8Array(large))

    expect(await isDone(pool.append(third, new Uint8Array(small)))).toBe(true)
    const waiting = pool.append(third, new Uint8Array(small))
    expect(await isDone(waiting)).toBe(false)
    await pool.close(one)
    expect(await isDone(waiting)).toBe(true)
    expect(third.sizeBytes).toBe(2 * small)
  })

  test.each([
    ['behind too many', { queueMax: 0 }],
    ['too long', { waitMaxMs: 10 }],
  ])('lets an upload that would wait %s go on in a file, with the bytes that it has', async (_, more) => {
    const folder = join(temporaryFolder(), 'spool')
    const pool = openPool({ memoryBuffersMax: 1, folder, ...more })
    const [one, other] = [await pool.open(0, 1), await pool.open(7, 1)]
    await pool.append(one, new Uint8Array(large))
    const [head, tail] = [generatedBytes(small, 1), generatedBytes(large, 2)]

    expect(await pool.append(other, head)).toBe(other)
    const inFile = await pool.append(other, tail)

    expect(inFile).toBeInstanceOf(FilePartBuffer)
    expect([inFile.startsAt, inFile.sizeBytes]).toEqual([7, small + large])
    expect(await bytesIn(inFile)).toEqual(new Uint8Array(Buffer.concat([head, tail])))
    await pool.close(inFile)
    expect(readdirSync(folder)).toEqual([])
    expect(await pool.append(one, head)).toBe(one)
  })

  test('fails if there is neither memory nor a folder for files, and leaves no file', async () => {
    const folder = join(temporaryFolder(), 'spool')
    writeFileSync(folder, 'not a folder')
    const pool = openPool({ memoryBuffersMax: 1, queueMax: 0, folder })
    const [one, other] = [await pool.open(0, 1), await pool.open(0, 1)]
    await pool.append(one, new Uint8Array(large))

    expect(await errorOf(pool.append(other, new Uint8Array(large)))).toMatchObject({ code: 'EEXIST' })
    await pool.close(one)
    expect(await pool.append(other, new Uint8Array(large))).toBe(other)
  })

  test('releases a place once, even if a buffer is closed twice', async () => {
    const pool = openPool({ memoryBuffersMax: 1 })
    const [one, other, third] = await openThree(pool)
    await pool.append(one, new Uint8Array(large))
    await pool.close(one)
    await pool.close(one)
    await pool.append(other, new Uint8Array(large))

    expect(await isDone(pool.append(third, new Uint8Array(large)))).toBe(false)
    await pool.close(other)
  })

  test('keeps only parts that are too large for memory in files, and removes the files', async () => {
    const folder = join(temporaryFolder(), 'spool')
    const plan = {
      steps: [500_000, 1_000_000].map((sizeBytes) => ({ parts: 1, sizeBytes })),
      minBytes: 1,
      memoryMax: 500_000,
    }
    const pool = openPool({ plan, folder })
    expect(await pool.open(0, 1)).toBeInstanceOf(MemoryPartBuffer)
    expect(existsSync(folder)).toBe(false)
    const buffer = await pool.open(0, 2)
    const chunks = [generatedBytes(300_000, 1), generatedBytes(5, 2)]
    for (const chunk of chunks) await pool.append(buffer, chunk)

    expect(buffer).toBeInstanceOf(FilePartBuffer)
    expect(readdirSync(folder)).toHaveLength(1)
    expect(await bytesIn(buffer)).toEqual(new Uint8Array(Buffer.concat(chunks)))
    await pool.close(buffer)
    await pool.close(buffer)
    expect(readdirSync(folder)).toEqual([])
  })

  test('rejects further chunks and requests after a failed write', async () => {
    const buffer = await FilePartBuffer.open(0, temporaryFolder(), 'sha256')
    await buffer.append(generatedBytes(10, 1))
    await buffer.discard()
    const error = await errorOf(buffer.append(generatedBytes(10, 2)))

    expect(error).toMatchObject({ code: 'EBADF' })
    expect(await errorOf(buffer.append(generatedBytes(10, 2)))).toBe(error)
    expect(() => buffer.body()).toThrow(error)
    expect(buffer.sizeBytes).toBe(10)
  })

  test('releases the place even if the file cannot be removed', async () => {
    const folder = join(temporaryFolder(), 'spool')
    const pool = openPool({ memoryBuffersMax: 1, queueMax: 0, folder })
    const one = await pool.append(await pool.open(0, 1), new Uint8Array(large))
    const inFile = await pool.append(await pool.open(0, 1), new Uint8Array(large))
    for (const file of readdirSync(folder)) unlinkSync(join(folder, file))
    await pool.close(inFile)
    await pool.close(one)

    expect(inFile).toBeInstanceOf(FilePartBuffer)
    expect(await pool.append(await pool.open(0, 1), new Uint8Array(large))).toBeInstanceOf(MemoryPartBuffer)
  })
})

describe('a buffer in memory', () => {
  const chunkSizes = fc.array(fc.constantFrom(0, 1, 2, 700, 4_095, 4_096, 5_000, 65_536, 70_000), { maxLength: 60 })

  test('has the bytes of all chunks in order, and their checksums', async () => {
    await fc.assert(
      fc.asyncProperty(chunkSizes, fc.constantFrom<Checksum>('sha256', 'crc32', 'none'), async (sizes, checksum) => {
        const chunks = sizes.map((size, index) => generatedBytes(size, index + 1))
        const whole = new Uint8Array(Buffer.concat(chunks))
        const buffer = new MemoryPartBuffer(0, checksum)
        for (const chunk of chunks) {
          await buffer.append(chunk)
          // It may be sent, and then grow.
          if (checksum === 'none') expect(buffer.body().bytes).toHaveLength(buffer.sizeBytes)
        }
        const body = buffer.body()

        expect(buffer.sizeBytes).toBe(whole.length)
        expect(body.bytes).toEqual(whole)
        expect(buffer.body().bytes).toEqual(whole)
        const sha256 = checksum === 'sha256' ? new Bun.CryptoHasher('sha256').update(whole).digest('hex') : undefined
        expect(body.sha256).toBe(sha256)
        const crc32 = Buffer.alloc(4)
        crc32.writeUInt32BE(Bun.hash.crc32(whole))
        expect(body.crc32).toBe(checksum === 'crc32' ? crc32.toString('base64') : undefined)
      }),
      { numRuns: 60 },
    )
  })

  test.each([1_000, 1_000_000])(
    'of %d bytes frees its memory when it is discarded, and ends the body of a request that still sends it',
    async (size) => {
      const buffer = new MemoryPartBuffer(0, 'none')
      await buffer.append(generatedBytes(size, 1))
      const body = buffer.body()
      const sent = toRequestBody(body)
      const reader = sent instanceof ReadableStream ? sent.getReader() : undefined
      expect((await reader?.read())?.done).toBe(size === 1_000 ? undefined : false)
      await buffer.discard()
      await buffer.discard()

      expect(sizeOfBody(body)).toBe(0)
      if (reader === undefined) expect(sent).toHaveLength(0)
      else expect((await reader.read()).done).toBe(true)
    },
  )

  test('takes no more memory for bytes that arrive one by one', async () => {
    const count = () => {
      Bun.gc(true)
      return heapStats().objectTypeCounts['Uint8Array'] ?? 0
    }
    const before = count()
    const buffer = new MemoryPartBuffer(0, 'none')
    for (let at = 0; at < 100_000; at += 1) await buffer.append(new Uint8Array([at]))

    expect(count() - before).toBeLessThan(1_000)
    expect(buffer.sizeBytes).toBe(100_000)
  })
})
