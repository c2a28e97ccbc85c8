// The client against a strict S3 server: what its requests do to the bucket, and their form. The contract of blob stores
// (test/contract/blob-store-s3.test.ts) checks bytes and ranges with each checksum.
import { afterAll, describe, expect, test } from 'bun:test'
import { FixedCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { S3Client, S3ClientSettings } from '../../../../src/adapters/blobs-s3/s3-client.ts'
import { bodyOf, openS3Client, readAll, s3ErrorOf } from '../../../support/s3/s3-client.ts'
import { startS3Stub } from '../../../support/s3/s3-stub.ts'

const mebi = 1024 * 1024
const stub = startS3Stub({ pageSize: 3, partBytesMin: mebi })
afterAll(() => stub.stop())

const keys = new FixedCredentials(stub.accessKey, stub.secretKey, undefined)

function open(more: Partial<S3ClientSettings> = {}): S3Client {
  return openS3Client(stub.url, { region: stub.region, bucket: stub.bucket, credentials: keys, ...more })
}

const content = Buffer.concat(Array.from({ length: 40 }, () => crypto.getRandomValues(Buffer.alloc(65_536))))

describe.each(['sha256', 'crc32', 'none'] as const)('with the checksum %s', (checksum) => {
  const client = open({ checksum })
  const folder = `${checksum}/`

  test('objects of any name, files and parts are stored and read, whole and in part', async () => {
    const name = `${folder}a b+c'(d)*!~\u00fc/\u20ac;=&?#@%41`
    await client.put(name, bodyOf(content))
    await client.put(`${folder}file`, { bytes: new Blob([content]), sha256: undefined, crc32: undefined })
    for (const stored of [name, `${folder}file`]) expect(stub.objects().get(stored)).toEqual(new Uint8Array(content))
    expect((await readAll(await client.open(name, content.length))).equals(content)).toBe(true)
    const part = await readAll(await client.open(name, content.length, { first: 5, last: 99_999 }))
    expect(part.equals(content.subarray(5, 100_000))).toBe(true)
    expect(await client.findSize(name)).toBe(content.length)

    const id = await client.createUpload(`${folder}parts`)
    const first = await client.uploadPart(`${folder}parts`, id, 1, bodyOf(content.subarray(0, mebi)))
    const last = await client.uploadPart(`${folder}parts`, id, 2, bodyOf(content.subarray(mebi, mebi + 10)))
    await client.completeUpload(`${folder}parts`, id, [first, last], mebi + 10)
    expect(stub.objects().get(`${folder}parts`)).toEqual(new Uint8Array(content.subarray(0, mebi + 10)))
  })

  test('bytes that do not have it are rejected', async () => {
    const sha256 = checksum === 'sha256' ? Bun.CryptoHasher.hash('sha256', 'other', 'hex') : undefined
    const sent = client.put(`${folder}bent`, { bytes: Buffer.from('bytes'), sha256, crc32: 'AAAAAA==' })
    if (checksum === 'none') await sent
    else expect((await s3ErrorOf(sent)).status).toBe(400)
    expect(stub.objects().has(`${folder}bent`)).toBe(checksum === 'none')
  })

  test('each PUT has its length, and none is in signed chunks', async () => {
    const puts = stub.requests().filter(({ method }) => method === 'PUT')
    expect(puts.length).toBeGreaterThan(0)
    for (const { headers } of puts) {
      expect(headers['content-length']).toMatch(/^\d+$/)
      expect([headers['transfer-encoding'], headers['content-encoding']]).toEqual([undefined, undefined])
    }
  })
})

test('a bucket that does not exist makes the store unavailable', async () => {
  const lost = open({ bucket: 'another-bucket' })
  const calls = [lost.probe(), lost.open('x', 1), lost.remove('x'), lost.put('x', bodyOf('x'))]
  const faults = await Promise.all(calls.map(s3ErrorOf))
  expect(faults.map(({ code }) => code)).toEqual(Array(4).fill('NoSuchBucket'))
})

describe('lists', () => {
  const client = open()
  const names = Array.from({ length: 7 }, (_, index) => `lists/a&<b>'"\u00fc ${index}`)

  test('have all objects of a prefix, page by page, with their age by the clock of the server', async () => {
    for (const name of [...names, 'listsx']) await client.put(name, bodyOf('bytes'))
    // Ten minutes are not enough for a rejection.
    stub.moveClock(600_000)
    const pages = await Array.fromAsync(client.listObjects('lists/'))
    stub.moveClock(-600_000)
    for (const { ageMs } of pages.flat()) {
      expect(ageMs).toBeGreaterThan(590_000)
      expect(ageMs).toBeLessThan(650_000)
    }
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1])
    expect(pages.flat().map(({ name }) => name)).toEqual(names)
    expect(await Array.fromAsync(client.listObjects('nowhere/'))).toEqual([[]])
  })

  test('have all unfinished uploads of a prefix, even two of one name on two pages', async () => {
    const begun = new Set<string>()
    for (const name of [...names, names[2] ?? '']) begun.add(`${name} ${await client.createUpload(name)}`)
    await client.createUpload('listsx')
    const pages = await Array.fromAsync(client.listUploads('lists/'))
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 2])
    expect(new Set(pages.flat().map(({ name, uploadId }) => `${name} ${uploadId}`))).toEqual(begun)
    for (const { ageMs } of pages.flat()) expect(ageMs).toBeLessThan(60_000)
    expect(await Array.fromAsync(client.listUploads('nowhere/'))).toEqual([[]])
  })
})
