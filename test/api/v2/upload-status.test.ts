// getUpload and deleteUpload, the blob in one request, and whose an upload is: distribution-spec end-4b, end-13.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, startUpload } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { moveBlobsAway } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'status/deep/app'
const content = 'hello, world'
const digest = digestOf(content)
const nobodys = '00000000-0000-4000-8000-000000000000'

describe.each(mounts)('getUpload at %s', (mount) => {
  test('answers 204 with 0-0 while there is nothing', async () => {
    const location = await startUpload(server, name, mount)
    const reply = await server.ask('GET', location)

    expect([reply.status, reply.text, reply.headers.get('range')]).toEqual([204, '', '0-0'])
    expect([reply.headers.get('location'), reply.headers.get('content-type')]).toEqual([location, null])
  })

  test('tells how much is here', async () => {
    const location = await startUpload(server, name, mount)
    await server.ask('PATCH', location, { body: 'hello' })
    const reply = await server.ask('GET', location)

    expect([reply.status, reply.headers.get('range')]).toEqual([204, '0-4'])
  })

  test.each([nobodys, 'not-an-id', nobodys.toUpperCase().replaceAll('0', 'A')])(
    'answers 404 for the id %s',
    async (id) => {
      const reply = await server.ask('GET', `${mount}/${name}/blobs/uploads/${id}`)

      expect(reply.status).toBe(404)
    },
  )

  test('answers 404 BLOB_UPLOAD_UNKNOWN for an upload that there is not', async () => {
    const reply = await server.ask('GET', `${mount}/${name}/blobs/uploads/${nobodys}`)

    expect(reply.json()).toMatchObject({ errors: [{ code: 'BLOB_UPLOAD_UNKNOWN', detail: { id: nobodys } }] })
  })
})

describe.each(mounts)('deleteUpload at %s', (mount) => {
  test('answers 204 without a body, and the upload is gone', async () => {
    const location = await startUpload(server, name, mount)
    const reply = await server.ask('DELETE', location)

    expect([reply.status, reply.text, ownHeaders(reply)]).toEqual([204, '', []])
    expect((await server.ask('GET', location)).status).toBe(404)
  })

  test('forgets the bytes: the upload cannot be closed any more', async () => {
    const location = await startUpload(server, name, mount)
    await server.ask('PATCH', location, { body: content })
    await server.ask('DELETE', location)

    expect((await server.ask('PUT', `${location}?digest=${digest}`)).status).toBe(404)
  })

  test('answers 404 the second time', async () => {
    const location = await startUpload(server, name, mount)
    await server.ask('DELETE', location)
    const reply = await server.ask('DELETE', location)

    expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code: 'BLOB_UPLOAD_UNKNOWN' }] }])
  })
})

describe.each(mounts)('a blob in one request at %s', (mount) => {
  const post = (query: string, body: string) => server.ask('POST', `${mount}/${name}/blobs/uploads/?${query}`, { body })

  test('answers 201 with the address of the blob', async () => {
    const reply = await post(`digest=${digest}`, content)

    expect([reply.status, reply.text]).toEqual([201, ''])
    expect(ownHeaders(reply)).toEqual(['content-length', 'docker-content-digest', 'location'])
    expect(reply.headers.get('location')).toBe(`${mount}/${name}/blobs/${digest}`)
  })

  test('answers 201 again when the blob is here already', async () => {
    await post(`digest=${digest}`, content)

    expect((await post(`digest=${digest}`, content)).status).toBe(201)
  })

  test('answers 400 DIGEST_INVALID when the bytes are not of the digest', async () => {
    const reply = await post(`digest=${digestOf('expected')}`, 'sent')

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'DIGEST_INVALID' }] }])
    expect((await server.ask('HEAD', `${mount}/${name}/blobs/${digestOf('expected')}`)).status).toBe(404)
  })
})

describe('whose an upload is', () => {
  test('the user who began it: it is unknown to other users of the account', async () => {
    const key = await addPerson(server, { name: 'status-writer', roles: ['writer'] })
    const location = await startUpload(server, name)
    const replies = [
      await server.ask('GET', location, { key }),
      await server.ask('PATCH', location, { key, body: 'x' }),
      await server.ask('PUT', `${location}?digest=${digest}`, { key, body: content }),
      await server.ask('DELETE', location, { key }),
    ]

    expect(replies.map((reply) => reply.status)).toEqual([404, 404, 404, 404])
    expect((await server.ask('GET', location)).status).toBe(204)
  })

  test('the repository in which it began: in others it is unknown', async () => {
    const location = await startUpload(server, name)

    expect((await server.ask('GET', location.replace(name, 'status/other'))).status).toBe(404)
  })

  test('not the mount in which it began: it can be continued in the other', async () => {
    const location = await startUpload(server, name)
    const reply = await server.ask('PUT', `/api/2023-12-28${location}?digest=${digest}`, { body: content })

    expect([reply.status, reply.headers.get('location')]).toEqual([201, `/api/2023-12-28/v2/${name}/blobs/${digest}`])
  })
})

describe('an upload at a limit or without the store', () => {
  test('answers 503 while the blob folder is gone, and goes on when it is back', async () => {
    const own = await startApi()
    const location = await startUpload(own, 'app')
    const away = moveBlobsAway(own.dataDir)
    const refused = await own.ask('PATCH', location, { body: content })
    away.moveBack()
    const closed = await own.ask('PUT', `${location}?digest=${digest}`, { body: content })
    await own.stop()

    expect([refused.status, refused.headers.get('retry-after'), closed.status]).toEqual([503, '5', 201])
  })

  test('answers 429 with Retry-After when a repository has too many, and begins again when one is cancelled', async () => {
    const own = await startApi({ BERTH_LIMITS__UPLOADS_PER_REPOSITORY: '1' })
    const location = await startUpload(own, 'app')
    const refused = await own.ask('POST', '/v2/app/blobs/uploads/')
    const elsewhere = await own.ask('POST', '/v2/other/blobs/uploads/')
    await own.ask('DELETE', location)
    const begun = await own.ask('POST', '/v2/app/blobs/uploads/')
    await own.stop()

    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
    expect([elsewhere.status, begun.status]).toEqual([202, 202])
  })

  test('answers 429 to a caller with too many, and to no other caller nor to a blob in one request', async () => {
    const own = await startApi({ BERTH_LIMITS__UPLOADS_PER_PRINCIPAL: '1' })
    const key = await addPerson(own, { name: 'another-writer', roles: ['writer'] })
    await startUpload(own, 'app')
    const refused = await own.ask('POST', '/v2/app/blobs/uploads/')
    const another = await own.ask('POST', '/v2/app/blobs/uploads/', { key })
    const atOnce = await own.ask('POST', `/v2/app/blobs/uploads/?digest=${digest}`, { body: content })
    await own.stop()

    expect([refused.status, refused.json()]).toMatchObject([429, { errors: [{ detail: { max: 1, of: 'caller' } }] }])
    expect([another.status, atOnce.status]).toEqual([202, 201])
  })

  test('answers 413 to a blob of one byte above the limit, announced or not, and takes one of the limit', async () => {
    const own = await startApi({ BERTH_LIMITS__BLOB_BYTES: '1MiB' })
    const tooLarge = 'x'.repeat(1024 * 1024 + 1)
    const largest = await own.ask('PATCH', await startUpload(own, 'app'), { body: tooLarge.slice(1) })
    const announced = await own.ask('PATCH', await startUpload(own, 'app'), { body: tooLarge })
    const streamed = await own.ask('PATCH', await startUpload(own, 'app'), { body: new Blob([tooLarge]).stream() })
    await own.stop()

    expect([largest.status, announced.status, streamed.status]).toEqual([202, 413, 413])
    expect(announced.json()).toMatchObject({ errors: [{ code: 'SIZE_INVALID' }] })
  })
})
