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
import { type Checksum, sizeOfBody, toRequestBody } from '../../../../src/adapters/blobs-s3/s3-response.ts'
import { RegistryRefusal, Unavailable } from '../../../../src/oci/errors.ts'
import type { DiskSpace } from '../../../../src/ports/disk-space.ts'
import { generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('pieces')
const large = 200_000
const small = 60_000

function openRoom(more: Partial<PartBufferSettings> = {}): PartBufferPool {
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

/** Whether it is done by the time that all that could be done was done. */
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

describe('a piece in a file', () => {
  test('stops at the reserve of the disk, and gives back what it has announced', async () => {
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
    const room = openRoom({ plan, disk })
    const piece = await room.open(0, 1)

    await room.append(piece, generatedBytes(100_000, 1))
    expect(await errorOf(room.append(piece, generatedBytes(200_000, 2)))).toBeInstanceOf(Unavailable)
    await room.append(piece, generatedBytes(100_000, 3))

    expect([piece.sizeBytes, left]).toEqual([200_000, 150_000])
    await room.close(piece)
  })
})

describe('the room of all pieces', () => {
  test('gives no more places than there are, and everybody gets one in the end', async () => {
    const writers = fc.array(fc.array(fc.constantFrom(1_000, small, large, 3 * large), { maxLength: 6 }), {
      minLength: 3,
      maxLength: 12,
    })
    await fc.assert(
      fc.asyncProperty(writers, fc.integer({ min: 1, max: 4 }), async (works, memoryBuffersMax) => {
        const room = openRoom({ memoryBuffersMax })
        let held = 0
        let most = 0
        const write = async (sizes: readonly number[]): Promise<void> => {
          const travelling: Promise<void>[] = []
          for (const [index, size] of sizes.entries()) {
            const piece = await room.open(0, index + 1)
            await room.append(piece, new Uint8Array(size))
            const isHeld = size > 64 * 1024
            if (isHeld) held += 1
            most = Math.max(most, held)
            // On its way to the store, while the next piece is gathered.
            const sent = new Promise(setImmediate).then(() => {
              if (isHeld) held -= 1
              return room.close(piece)
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

  test('lets what is small come in when it is full, and lets the rest wait', async () => {
    const room = openRoom()
    const pieces = await Promise.all([1, 2, 3].map((number) => room.open(0, number)))
    const [one, other, third] = pieces as [PartBuffer, PartBuffer, PartBuffer]
    await room.append(one, new Uint8Array(large))
    await room.append(other, new Uint8Array(large))

    expect(await isDone(room.append(third, new Uint8Array(small)))).toBe(true)
    const waiting = room.append(third, new Uint8Array(small))
    expect(await isDone(waiting)).toBe(false)
    await room.close(one)
    expect(await isDone(waiting)).toBe(true)
    expect(third.sizeBytes).toBe(2 * small)
  })

  test.each([
    ['behind too many', { queueMax: 0 }],
    ['too long', { waitMaxMs: 10 }],
  ])('lets who would wait %s go on in a file, with the bytes that it has', async (_, more) => {
    const folder = join(temporaryFolder(), 'spool')
    const room = openRoom({ memoryBuffersMax: 1, folder, ...more })
    const [one, other] = [await room.open(0, 1), await room.open(7, 1)]
    await room.append(one, new Uint8Array(large))
    const [head, tail] = [generatedBytes(small, 1), generatedBytes(large, 2)]

    expect(await room.append(other, head)).toBe(other)
    const inFile = await room.append(other, tail)

    expect(inFile).toBeInstanceOf(FilePartBuffer)
    expect([inFile.startsAt, inFile.sizeBytes]).toEqual([7, small + large])
    const stored = new Uint8Array(await new Response(new Blob([inFile.body().bytes])).arrayBuffer())
    expect(stored).toEqual(new Uint8Array(Buffer.concat([head, tail])))
    await room.close(inFile)
    expect(readdirSync(folder)).toEqual([])
    expect(await room.append(one, head)).toBe(one)
  })

  test('fails where there is neither memory nor a place for the file, and leaves nothing', async () => {
    const folder = join(temporaryFolder(), 'spool')
    writeFileSync(folder, 'not a folder')
    const room = openRoom({ memoryBuffersMax: 1, queueMax: 0, folder })
    const [one, other] = [await room.open(0, 1), await room.open(0, 1)]
    await room.append(one, new Uint8Array(large))

    expect(await errorOf(room.append(other, new Uint8Array(large)))).toMatchObject({ code: 'EEXIST' })
    await room.close(one)
    expect(await room.append(other, new Uint8Array(large))).toBe(other)
  })

  test('takes a place back once, however often it is given', async () => {
    const room = openRoom({ memoryBuffersMax: 1 })
    const [one, other, third] = (await Promise.all([1, 2, 3].map((number) => room.open(0, number)))) as PartBuffer[]
    if (one === undefined || other === undefined || third === undefined) throw new Error('no pieces')
    await room.append(one, new Uint8Array(large))
    await room.close(one)
    await room.close(one)
    await room.append(other, new Uint8Array(large))

    expect(await isDone(room.append(third, new Uint8Array(large)))).toBe(false)
    await room.close(other)
  })

  test('keeps pieces in files where they are too large for memory, and nothing of them afterwards', async () => {
    const folder = join(temporaryFolder(), 'spool')
    const plan = { steps: [{ parts: 10, sizeBytes: 1_000_000 }], minBytes: 1, memoryMax: 500_000 }
    const room = openRoom({ plan, folder })
    const piece = await room.open(0, 1)
    await room.append(piece, generatedBytes(300_000, 1))
    await room.append(piece, generatedBytes(5, 2))

    expect(piece).toBeInstanceOf(FilePartBuffer)
    expect(readdirSync(folder)).toHaveLength(1)
    const stored = new Uint8Array(await new Response(new Blob([piece.body().bytes])).arrayBuffer())
    expect(stored).toEqual(new Uint8Array(Buffer.concat([generatedBytes(300_000, 1), generatedBytes(5, 2)])))
    await room.close(piece)
    await room.close(piece)
    expect(readdirSync(folder)).toEqual([])
  })

  test('takes nothing more into a file that could not take a chunk, and sends nothing of it', async () => {
    const piece = await FilePartBuffer.open(0, temporaryFolder(), 'sha256')
    await piece.append(generatedBytes(10, 1))
    await piece.discard()
    const fault = await errorOf(piece.append(generatedBytes(10, 2)))

    expect(fault).toMatchObject({ code: 'EBADF' })
    expect(await errorOf(piece.append(generatedBytes(10, 2)))).toBe(fault)
    expect(() => piece.body()).toThrow(fault)
    expect(piece.sizeBytes).toBe(10)
  })

  test('gives a place back whatever becomes of the file', async () => {
    const folder = join(temporaryFolder(), 'spool')
    const room = openRoom({ memoryBuffersMax: 1, queueMax: 0, folder })
    const one = await room.append(await room.open(0, 1), new Uint8Array(large))
    const inFile = await room.append(await room.open(0, 1), new Uint8Array(large))
    for (const file of readdirSync(folder)) unlinkSync(join(folder, file))
    await room.close(inFile)
    await room.close(one)

    expect(inFile).toBeInstanceOf(FilePartBuffer)
    expect(await room.append(await room.open(0, 1), new Uint8Array(large))).toBeInstanceOf(MemoryPartBuffer)
  })

  test('makes no folder where no file is needed', async () => {
    const folder = join(temporaryFolder(), 'spool')
    await openRoom({ folder }).open(0, 1)

    expect(existsSync(folder)).toBe(false)
  })
})

describe('a piece in memory', () => {
  const chunkSizes = fc.array(fc.constantFrom(0, 1, 2, 700, 4_095, 4_096, 5_000, 65_536, 70_000), { maxLength: 60 })

  test('has the bytes of all its chunks in their order, whatever their sizes, and their proof', async () => {
    await fc.assert(
      fc.asyncProperty(chunkSizes, fc.constantFrom<Checksum>('sha256', 'crc32', 'none'), async (sizes, checksum) => {
        const chunks = sizes.map((size, index) => generatedBytes(size, index + 1))
        const whole = new Uint8Array(Buffer.concat(chunks))
        const piece = new MemoryPartBuffer(0, checksum)
        for (const chunk of chunks) await piece.append(chunk)
        const body = piece.body()

        expect(piece.sizeBytes).toBe(whole.length)
        expect(body.bytes).toEqual(whole)
        expect(piece.body().bytes).toEqual(whole)
        const sha256 = checksum === 'sha256' ? new Bun.CryptoHasher('sha256').update(whole).digest('hex') : undefined
        expect(body.sha256).toBe(sha256)
        const crc32 = Buffer.alloc(4)
        crc32.writeUInt32BE(Bun.hash.crc32(whole))
        expect(body.crc32).toBe(checksum === 'crc32' ? crc32.toString('base64') : undefined)
      }),
      { numRuns: 60 },
    )
  })

  test('can be appended to after it was sent', async () => {
    const piece = new MemoryPartBuffer(0, 'none')
    await piece.append(generatedBytes(100, 1))
    expect(piece.body().bytes).toEqual(generatedBytes(100, 1))
    await piece.append(generatedBytes(10_000, 2))

    const whole = new Uint8Array(Buffer.concat([generatedBytes(100, 1), generatedBytes(10_000, 2)]))
    expect(piece.body().bytes).toEqual(whole)
  })

  test('gives its memory back as it is discarded, whoever still looks at it', async () => {
    const piece = new MemoryPartBuffer(0, 'none')
    await piece.append(generatedBytes(100_000, 1))
    const { bytes } = piece.body()
    const sent = toRequestBody({ bytes, sha256: undefined, crc32: undefined })
    await piece.discard()
    await piece.discard()

    expect(sizeOfBody({ bytes, sha256: undefined, crc32: undefined })).toBe(0)
    expect(sent).toHaveLength(0)
  })

  test('of which an attempt still sends when it is discarded ends early', async () => {
    const piece = new MemoryPartBuffer(0, 'none')
    await piece.append(generatedBytes(1_000_000, 1))
    const sent = toRequestBody(piece.body())
    if (!(sent instanceof ReadableStream)) throw new Error('what is large is streamed')
    const reader = sent.getReader()
    const first = (await reader.read()).value?.length ?? 0
    await piece.discard()

    expect(first).toBeGreaterThan(0)
    expect((await reader.read()).done).toBe(true)
  })

  test('takes no more room for bytes that come one by one', async () => {
    const count = () => {
      Bun.gc(true)
      return heapStats().objectTypeCounts['Uint8Array'] ?? 0
    }
    const before = count()
    const piece = new MemoryPartBuffer(0, 'none')
    for (let at = 0; at < 100_000; at += 1) await piece.append(new Uint8Array([at]))

    expect(count() - before).toBeLessThan(1_000)
    expect(piece.sizeBytes).toBe(100_000)
  })
})
