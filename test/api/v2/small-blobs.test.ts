// storage.inline_bytes: blobs up to this size are in their rows; larger ones are files. Clients see no difference.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { digestOf, pushApiImage, pushBlob, startUpload } from '../../support/api/api-images.ts'
import { type ApiServer, mounts, startApi } from '../../support/api/api-server.ts'
import { generatedBytes } from '../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { auditStores, countRows, fileOfBlob, listFiles } from '../../support/stores/store-audit.ts'
import { moveBlobsAway } from '../../support/stores/store-damage.ts'

const temporaryFolder = useTemporaryFolders('small-blobs')
const limit = 16_384
const name = 'small/app'
let server: ApiServer
beforeAll(async () => {
  server = await startApi()
})
afterAll(() => server.stop())

let seed = 0
function contentOf(sizeBytes: number): Uint8Array {
  seed += 1
  return generatedBytes(sizeBytes, seed)
}
const blobPath = (digest: string, repository = name) => `/v2/${repository}/blobs/${digest}`

async function statusOf(asked: Promise<{ readonly status: number }>): Promise<number> {
  return (await asked).status
}

/** How clients send a blob. Each returns the status of the last answer. */
const forms: Readonly<Record<string, (content: Uint8Array, digest: string) => Promise<number>>> = {
  'POST with the digest': (content, digest) =>
    statusOf(server.ask('POST', `/v2/${name}/blobs/uploads/?digest=${digest}`, { body: content })),
  'POST with the digest, chunked': (content, digest) => {
    const body = new Blob([new Uint8Array(content)]).stream()
    return statusOf(server.ask('POST', `/v2/${name}/blobs/uploads/?digest=${digest}`, { body }))
  },
  'POST and PUT': async (content, digest) =>
    statusOf(server.ask('PUT', `${await startUpload(server, name)}?digest=${digest}`, { body: content })),
  'POST, PATCH and PUT': async (content, digest) => {
    const session = await startUpload(server, name)
    expect(await statusOf(server.ask('PATCH', session, { body: content }))).toBe(202)
    return statusOf(server.ask('PUT', `${session}?digest=${digest}`))
  },
  'POST, many PATCH and PUT': async (content, digest) => {
    const session = await startUpload(server, name)
    const size = Math.max(1, Math.ceil(content.length / 3))
    for (let at = 0; at + size < content.length; at += size) {
      expect(await statusOf(server.ask('PATCH', session, { body: content.subarray(at, at + size) }))).toBe(202)
    }
    const rest = content.subarray(Math.max(0, Math.ceil(content.length / size) - 1) * size)
    return statusOf(server.ask('PUT', `${session}?digest=${digest}`, { body: rest }))
  },
}

describe.each(Object.entries(forms))('a blob by %s', (_, send) => {
  test.each([0, 1, 10_000, limit])('of %d bytes is stored without a file', async (sizeBytes) => {
    const content = contentOf(sizeBytes)
    const digest = digestOf(content)
    const before = listFiles(server.dataDir).length

    expect(await send(content, digest)).toBe(201)

    expect(listFiles(server.dataDir)).toHaveLength(before)
    expect(countRows(server.dataDir, 'blobs', `digest = '${digest}' AND content IS NOT NULL`)).toBe(1)
    const [whole, head] = [await server.ask('GET', blobPath(digest)), await server.ask('HEAD', blobPath(digest))]
    expect([whole.status, digestOf(whole.bytes)]).toEqual([200, digest])
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(sizeBytes)])
  })

  test.each([limit + 1, 100_000])('of %d bytes is a file', async (sizeBytes) => {
    const content = contentOf(sizeBytes)
    const digest = digestOf(content)
    const before = listFiles(server.dataDir).length

    expect(await send(content, digest)).toBe(201)

    expect(listFiles(server.dataDir)).toHaveLength(before + 1)
    expect(countRows(server.dataDir, 'blobs', `digest = '${digest}' AND content IS NULL`)).toBe(1)
    expect(digestOf((await server.ask('GET', blobPath(digest))).bytes)).toBe(digest)
  })

  test('is refused if the bytes do not have the digest, and can be sent again', async () => {
    const content = contentOf(100)
    const digest = digestOf(content)

    expect(await send(contentOf(100), digest)).toBe(400)
    expect(await statusOf(server.ask('HEAD', blobPath(digest)))).toBe(404)
    expect(await send(content, digest)).toBe(201)
  })

  test('is stored once, however often it is sent, and with a sha512 digest too', async () => {
    const content = contentOf(200)
    const [digest, long] = [digestOf(content), digestOf(content, 'sha512')]

    expect([await send(content, digest), await send(content, digest), await send(content, long)]).toEqual([
      201, 201, 201,
    ])
    expect(countRows(server.dataDir, 'blobs', `digest = '${digest}'`)).toBe(1)
    expect(digestOf((await server.ask('GET', blobPath(long))).bytes, 'sha512')).toBe(long)
  })
})

describe.each(mounts)('a small blob at %s', (mount) => {
  test('has the same headers as a file, ranges and conditions', async () => {
    const [small, large] = [contentOf(1_000), contentOf(limit + 1)]
    const headersOf = async (content: Uint8Array, headers: Readonly<Record<string, string>>) => {
      const digest = digestOf(content)
      await server.ask('POST', `/v2/${name}/blobs/uploads/?digest=${digest}`, { body: content })
      const reply = await server.ask('GET', `${mount}/${name}/blobs/${digest}`, { headers })
      return [reply.status, [...reply.headers.keys()].filter((header) => header !== 'date').toSorted()]
    }

    for (const headers of [{}, { range: 'bytes=0-9' }, { range: 'bytes=99999-' }, { 'if-none-match': '*' }]) {
      expect(await headersOf(small, headers)).toEqual(await headersOf(large, headers))
    }
    const part = await server.ask('GET', `${mount}/${name}/blobs/${digestOf(small)}`, {
      headers: { range: 'bytes=-10' },
    })
    expect(part.bytes).toEqual(small.slice(-10))
  })
})

describe('servers that cannot read such blobs', () => {
  test('do not start after a server has started with a limit', async () => {
    const own = await startApi({ BERTH_STORAGE__INLINE_BYTES: '0' })
    const isRefused = (dataDir: string) =>
      countRows(dataDir, 'schema_versions', 'version = 8 AND oldest_code = 8') === 1
    const refused = [isRefused(own.dataDir), isRefused(server.dataDir)]
    await own.stop()

    expect(refused).toEqual([false, true])
  })
})

describe('a small blob', () => {
  test('is mounted and deleted like others', async () => {
    const content = contentOf(300)
    const digest = digestOf(content)
    await server.ask('POST', `/v2/${name}/blobs/uploads/?digest=${digest}`, { body: content })

    expect(await statusOf(server.ask('POST', `/v2/small/other/blobs/uploads/?mount=${digest}&from=${name}`))).toBe(201)
    expect(await statusOf(server.ask('GET', blobPath(digest, 'small/third')))).toBe(404)
    expect(await statusOf(server.ask('DELETE', blobPath(digest)))).toBe(202)
    expect(await statusOf(server.ask('GET', blobPath(digest)))).toBe(404)
    expect(digestOf((await server.ask('GET', blobPath(digest, 'small/other'))).bytes)).toBe(digest)
  })

  test('needs no blob store: it is pushed and pulled while the folder is gone', async () => {
    const own = await startApi()
    const away = moveBlobsAway(own.dataDir)
    await pushApiImage(own, 'app', 'v1', { layers: ['small layer'] })
    const read = await own.ask('GET', blobPath(digestOf('small layer'), 'app'))
    away.moveBack()
    await own.stop()

    expect([read.status, read.text]).toEqual([200, 'small layer'])
  })

  test('is found and served with any limit, and takes the place of a lost object', async () => {
    const folder = temporaryFolder()
    const start = (limit: string) => startApi({ BERTH_DATA_DIR: folder, BERTH_STORAGE__INLINE_BYTES: limit })
    let own = await start('16KiB')
    const inline = await pushBlob(own, 'app', 'inline')
    const session = await startUpload(own, 'app')
    expect(await statusOf(own.ask('PATCH', session, { body: 'unfinished ' }))).toBe(202)
    await own.stop()

    own = await start('0')
    expect((await own.ask('GET', blobPath(inline, 'app'))).text).toBe('inline')
    const object = await pushBlob(own, 'app', 'object')
    expect(await pushBlob(own, 'app', 'inline')).toBe(inline)
    const whole = digestOf('unfinished upload')
    expect(await statusOf(own.ask('PUT', `${session}?digest=${whole}`, { body: 'upload' }))).toBe(201)
    expect((await own.ask('GET', blobPath(whole, 'app'))).text).toBe('unfinished upload')
    for (const digest of [object, whole]) rmSync(fileOfBlob(folder, digest))
    expect(await statusOf(own.ask('GET', blobPath(object, 'app')))).toBe(404)
    expect(await statusOf(own.ask('GET', blobPath(whole, 'app')))).toBe(404)
    await own.stop()

    own = await start('16KiB')
    expect(await pushBlob(own, 'app', 'object')).toBe(object)
    expect((await own.ask('GET', blobPath(object, 'app'))).text).toBe('object')
    await pushBlob(own, 'app', 'unfinished upload')
    await own.stop()
    expect(await auditStores(folder)).toEqual([])
    expect(countRows(folder, 'blobs', 'content IS NULL')).toBe(0)
  })

  test('is not stored in its row while the limit is 0', async () => {
    const own = await startApi({ BERTH_STORAGE__INLINE_BYTES: '0' })
    await pushBlob(own, 'app', '')
    await pushBlob(own, 'app', 'x')
    const files = listFiles(own.dataDir)
    await own.stop()

    expect(files).toHaveLength(2)
  })
})

test('an upload shows its size, is refused out of order, and is the same after its refusal', async () => {
  const session = await startUpload(server, name)
  const content = contentOf(20_000)
  const chunk = (first: number, last: number) =>
    server.ask('PATCH', session, {
      body: content.subarray(first, last + 1),
      headers: { 'content-range': `${first}-${last}` },
    })

  expect((await chunk(0, 99)).headers.get('range')).toBe('0-99')
  expect(await statusOf(chunk(200, 299))).toBe(416)
  expect((await server.ask('GET', session)).headers.get('range')).toBe('0-99')
  expect((await chunk(100, 16_383)).headers.get('range')).toBe('0-16383')
  expect((await chunk(16_384, 19_999)).headers.get('range')).toBe('0-19999')
  expect(await statusOf(server.ask('PUT', `${session}?digest=${digestOf(content)}`))).toBe(201)
  expect((await server.ask('GET', blobPath(digestOf(content)))).bytes).toEqual(content)
})

test('all stored blobs have their digest', async () => {
  expect(await auditStores(server.dataDir)).toEqual([])
})
