// The client against a strict S3 server: what it does to the bucket, and how it asks.
import { afterAll, describe, expect, test } from 'bun:test'
import { FixedCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { S3Client, S3ClientSettings } from '../../../../src/adapters/blobs-s3/s3-client.ts'
import { bodyOf, openS3Client, readAll, s3ErrorOf, TestTime } from '../../../support/s3/s3-client.ts'
import { startS3Stub } from '../../../support/s3/s3-stub.ts'

const mebi = 1024 * 1024
const stub = startS3Stub({ pageSize: 3, partBytesMin: mebi })
afterAll(() => stub.stop())

const keys = new FixedCredentials(stub.accessKey, stub.secretKey, undefined)

function open(more: Partial<S3ClientSettings> = {}, time = new TestTime()): S3Client {
  return openS3Client(stub.url, { region: stub.region, bucket: stub.bucket, credentials: keys, ...more }, time)
}

const content = Buffer.concat(Array.from({ length: 40 }, () => crypto.getRandomValues(Buffer.alloc(65_536))))

async function push(client: S3Client, name: string, parts: readonly Uint8Array[]): Promise<void> {
  const id = await client.createUpload(name)
  const etags: string[] = []
  for (const [index, part] of parts.entries()) etags.push(await client.uploadPart(name, id, index + 1, bodyOf(part)))
  await client.completeUpload(
    name,
    id,
    etags,
    parts.reduce((sum, { length }) => sum + length, 0),
  )
}

describe.each(['sha256', 'crc32', 'none'] as const)('with the checksum %s', (checksum) => {
  const client = open({ checksum })
  const folder = `${checksum}/`

  test('objects go there and come back, whole and in part, whatever their names', async () => {
    const name = `${folder}a b+c'(d)*!~\u00fc/\u20ac;=&?#@%41`
    await client.put(name, bodyOf(content))
    expect((await readAll(await client.open(name, content.length))).equals(content)).toBe(true)
    for (const [first, last] of [
      [0, 0],
      [5, 99_999],
      [content.length - 1, content.length - 1],
      [0, content.length - 1],
    ] as const) {
      const part = await readAll(await client.open(name, content.length, { first, last }))
      expect(part.equals(content.subarray(first, last + 1))).toBe(true)
    }
    expect(await client.findSize(name)).toBe(content.length)
    expect(stub.objects().get(name)).toEqual(new Uint8Array(content))
  })

  test('so do files, and nothing at all', async () => {
    await client.put(`${folder}blob`, { bytes: new Blob([content]), sha256: undefined, crc32: undefined })
    await client.put(`${folder}empty`, bodyOf(''))
    expect((await readAll(await client.open(`${folder}blob`, content.length))).equals(content)).toBe(true)
    expect((await readAll(await client.open(`${folder}empty`, 0))).length).toBe(0)
    expect(await client.findSize(`${folder}empty`)).toBe(0)
  })

  test('objects come of their parts', async () => {
    const parts = [
      content.subarray(0, mebi),
      content.subarray(mebi, 2 * mebi),
      content.subarray(2 * mebi, 2 * mebi + 10),
    ]
    await push(client, `${folder}parts`, parts)
    const total = 2 * mebi + 10
    const found = await readAll(await client.open(`${folder}parts`, total))
    expect(found.equals(content.subarray(0, total))).toBe(true)
  })

  test('what was sent wrong is refused, where it is looked at', async () => {
    const sha256 = Bun.CryptoHasher.hash('sha256', 'other', 'hex')
    const crc32 = 'AAAAAA=='
    const proofs = { sha256: checksum === 'sha256' ? sha256 : undefined, crc32 }
    const sent = client.put(`${folder}bent`, { bytes: Buffer.from('bytes'), ...proofs })
    if (checksum === 'none') await sent
    else expect((await s3ErrorOf(sent)).status).toBe(400)
    expect(stub.objects().has(`${folder}bent`)).toBe(checksum === 'none')
  })

  test('no request is without its length, and none in chunks of a signature', async () => {
    const puts = stub.requests().filter(({ method }) => method === 'PUT')
    expect(puts.length).toBeGreaterThan(0)
    for (const { headers } of puts) {
      expect(headers['content-length']).toMatch(/^\d+$/)
      expect([headers['transfer-encoding'], headers['content-encoding']]).toEqual([undefined, undefined])
    }
  })
})

describe('what is not there', () => {
  const client = open()

  test('is nothing to open, has no size, and is removed', async () => {
    expect(await client.open('none', 5)).toBeUndefined()
    expect(await client.findSize('none')).toBeUndefined()
    await client.remove('none')
  })

  test('is an object of another size', async () => {
    await client.put('five', bodyOf('bytes'))
    expect(await client.open('five', 4)).toBeUndefined()
    expect(await client.open('five', 6)).toBeUndefined()
    expect(await client.open('five', 60, { first: 50, last: 59 })).toBeUndefined()
    expect(await client.open('five', 6, { first: 0, last: 1 })).toBeUndefined()
  })

  test('is an object that was removed, and removing it again is a success', async () => {
    await client.put('gone', bodyOf('bytes'))
    await client.remove('gone')
    await client.remove('gone')
    expect(await client.findSize('gone')).toBeUndefined()
  })

  test('is an upload that was aborted, and aborting it again is a success', async () => {
    const id = await client.createUpload('aborted')
    await client.abortUpload('aborted', id)
    await client.abortUpload('aborted', id)
    expect((await s3ErrorOf(client.uploadPart('aborted', id, 1, bodyOf('bytes')))).code).toBe('NoSuchUpload')
    expect((await s3ErrorOf(client.completeUpload('aborted', id, ['"x"'], 5))).code).toBe('NoSuchUpload')
  })

  test('makes the store unavailable if the bucket is missing', async () => {
    const lost = open({ bucket: 'another-bucket' })
    const calls = [lost.probe(), lost.open('x', 1), lost.remove('x'), lost.put('x', bodyOf('x'))]
    const faults = await Promise.all(calls.map(s3ErrorOf))
    expect(faults.map(({ code }) => code)).toEqual(Array(4).fill('NoSuchBucket'))
  })
})

test('an upload is completed once, and only of the parts that were sent', async () => {
  const client = open()
  const id = await client.createUpload('once')
  const etag = await client.uploadPart('once', id, 1, bodyOf('bytes'))
  expect((await s3ErrorOf(client.completeUpload('once', id, ['"other"'], 5))).code).toBe('InvalidPart')
  await client.completeUpload('once', id, [etag], 5)
  expect(await client.findSize('once')).toBe(5)
  expect((await s3ErrorOf(client.completeUpload('once', id, [etag], 5))).code).toBe('NoSuchUpload')
})

describe('lists', () => {
  const client = open()
  const names = Array.from({ length: 7 }, (_, index) => `lists/a&<b>'"\u00fc ${index}`)

  test('give all objects of a prefix, page by page, with their age', async () => {
    for (const name of [...names, 'listsx']) await client.put(name, bodyOf('bytes'))
    stub.moveClock(600_000)
    const pages: string[][] = []
    for await (const page of client.listObjects('lists/')) {
      pages.push(page.map(({ name }) => name))
      for (const { ageMs } of page) {
        // By the clock of the server, which is ten minutes ahead now: not enough to be refused for.
        expect(ageMs).toBeGreaterThan(590_000)
        expect(ageMs).toBeLessThan(650_000)
      }
    }
    stub.moveClock(-600_000)
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1])
    expect(pages.flat()).toEqual(names)
  })

  test('tell all unfinished uploads of a prefix, two of one name on two pages among them', async () => {
    const begun = new Set<string>()
    for (const name of [...names, names[2] ?? '']) begun.add(`${name} ${await client.createUpload(name)}`)
    await client.createUpload('listsx')
    const found: string[] = []
    for await (const page of client.listUploads('lists/')) {
      expect(page.length).toBeLessThanOrEqual(3)
      found.push(...page.map(({ name, uploadId }) => `${name} ${uploadId}`))
      for (const { ageMs } of page) expect(ageMs).toBeLessThan(60_000)
    }
    expect(found.length).toBe(8)
    expect(new Set(found)).toEqual(begun)
  })

  test('are empty where nothing is', async () => {
    for await (const page of client.listObjects('nowhere/')) expect(page).toEqual([])
    for await (const page of client.listUploads('nowhere/')) expect(page).toEqual([])
  })
})
