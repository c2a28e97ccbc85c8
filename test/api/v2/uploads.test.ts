// postUpload, patchUpload, putUpload, getUpload, deleteUpload: distribution-spec end-4, end-5, end-6, end-11, end-13,
// end-14. The ways to push a blob are cases of ../../conformance, and malformed chunks and digests those of ../../bad-input.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, pushBlob, startUpload } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, type Question, startApi, verdictOf } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { moveBlobsAway } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'uploads/deep/app'
const content = 'hello, world'
const digest = digestOf(content)
const unknownId = '00000000-0000-4000-8000-000000000000'
const sessionPattern = /\/blobs\/uploads\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const source = await pushBlob(server, 'uploads/source', 'mounted content')
const streamOf = (text: string) => new Blob([text]).stream()

describe.each(mounts)('an upload at %s', (mount) => {
  const uploads = `${mount}/${name}/blobs/uploads`
  const start = () => startUpload(server, name, mount)
  const patch = (location: string, body: string, headers: Question['headers'] = {}) =>
    server.ask('PATCH', location, { body, headers })
  const put = (location: string, body = '', wanted = digest) =>
    server.ask('PUT', `${location}?digest=${wanted}`, { body })
  const rangeOf = async (location: string) => (await server.ask('GET', location)).headers.get('range')

  test('begins with 202 and its address, in the same mount', async () => {
    const reply = await server.ask('POST', `${uploads}/`)

    expect([reply.status, reply.text, reply.headers.get('range')]).toEqual([202, '', '0-0'])
    expect(ownHeaders(reply)).toEqual(['content-length', 'docker-upload-uuid', 'location', 'range'])
    expect(reply.headers.get('location')).toStartWith(`${uploads}/`)
    expect(reply.headers.get('location')).toMatch(sessionPattern)
    expect(reply.headers.get('location')).toEndWith(`${reply.headers.get('docker-upload-uuid')}`)
  })

  test.each<readonly [string, string, Question]>([
    ['without the slash at the end', '', {}],
    ['whatever the content type', '/', { headers: { 'content-type': 'application/json' } }],
    ['for sha256', '/?digest-algorithm=sha256', {}],
    ['for sha512', '/?digest-algorithm=sha512', {}],
    ['in place of a mount from a repository without the blob', `/?mount=${source}&from=uploads/none`, {}],
    ['in place of a mount from no valid name', `/?mount=${source}&from=NOT/valid`, {}],
  ])('begins %s', async (_, path, question) => {
    const reply = await server.ask('POST', uploads + path, question)

    expect([reply.status, reply.headers.get('docker-content-digest')]).toEqual([202, null])
    expect(reply.headers.get('location')).toMatch(sessionPattern)
  })

  test('of a whole blob in one request is 201, also if the blob exists', async () => {
    for (let time = 0; time < 2; time += 1) {
      const reply = await server.ask('POST', `${uploads}/?digest=${digest}`, { body: content })

      expect([reply.status, reply.text]).toEqual([201, ''])
      expect(ownHeaders(reply)).toEqual(['content-length', 'docker-content-digest', 'location'])
      expect(reply.headers.get('location')).toBe(`${mount}/${name}/blobs/${digest}`)
    }
  })

  test('mounts a blob despite parameters that other registries know', async () => {
    const query = `mount=${source}&from=uploads/source&origin=docker.io`

    expect((await server.ask('POST', `${uploads}/?${query}`)).status).toBe(201)
  })

  test('can be closed again with the same digest, and answers 201 again', async () => {
    const location = await start()
    const replies = [await put(location, content), await put(location, content), await put(location)]

    expect(replies.map((reply) => [reply.status, reply.headers.get('location')])).toEqual(
      replies.map(() => [201, `${mount}/${name}/blobs/${digest}`]),
    )
    expect(ownHeaders(replies[2] ?? expect.unreachable())).toEqual([
      'content-length',
      'docker-content-digest',
      'location',
    ])
  })

  test('is over once it is closed, for all but that', async () => {
    const location = await start()
    await put(location, content)
    const replies = [
      await patch(location, 'more'),
      await server.ask('GET', location),
      await server.ask('DELETE', location),
      await put(location, '', digestOf('')),
    ]

    expect(replies.map((reply) => reply.status)).toEqual([404, 404, 404, 404])
  })

  test.each(['', '?digest='])('is not closed by "%s", and stays open', async (query) => {
    const location = await start()
    await patch(location, content)

    expect(verdictOf(await server.ask('PUT', location + query))).toBe('400 DIGEST_INVALID')
    expect((await put(location)).status).toBe(201)
  })

  test('ends when its content is not what the digest says', async () => {
    const location = await start()

    expect(verdictOf(await put(location, 'other content'))).toBe('400 DIGEST_INVALID')
    expect((await server.ask('GET', location)).status).toBe(404)
  })

  test.each(['3-7', '1-5', '100-104'])('refuses the chunk %s after two bytes, and tells the two', async (range) => {
    const location = await start()
    await patch(location, 'he')
    const reply = await patch(location, 'llo, ', { 'content-range': range })

    expect([verdictOf(reply), reply.headers.get('range'), reply.headers.get('location')]).toEqual([
      '416 BLOB_UPLOAD_INVALID',
      '0-1',
      location,
    ])
  })

  test('tells how much was received: 0-0 while there is nothing', async () => {
    const location = await start()
    const reply = await server.ask('GET', location)
    await patch(location, 'hello')

    expect([reply.status, reply.text, reply.headers.get('content-type')]).toEqual([204, '', null])
    expect([reply.headers.get('range'), reply.headers.get('location')]).toEqual(['0-0', location])
    expect(await rangeOf(location)).toBe('0-4')
  })

  test('is unknown with the id of no upload', async () => {
    const reply = await server.ask('GET', `${uploads}/${unknownId}`)

    expect([reply.status, reply.json()]).toMatchObject([
      404,
      { errors: [{ code: 'BLOB_UPLOAD_UNKNOWN', detail: { id: unknownId } }] },
    ])
  })

  test('that is cancelled answers 204 without a body, and is unknown after that', async () => {
    const location = await start()
    await patch(location, content)
    const reply = await server.ask('DELETE', location)

    expect([reply.status, reply.text, ownHeaders(reply)]).toEqual([204, '', []])
    for (const late of [await put(location), await server.ask('DELETE', location)]) {
      expect(verdictOf(late)).toBe('404 BLOB_UPLOAD_UNKNOWN')
    }
  })
})

describe('an upload belongs', () => {
  test('to the user who began it: it is unknown to other users of the account', async () => {
    const key = await addPerson(server, { name: 'uploads-writer', roles: ['writer'] })
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

  test('to the repository in which it began, and to no mount', async () => {
    const location = await startUpload(server, name)
    const closed = `/api/2023-12-28${location}?digest=${digest}`

    expect((await server.ask('GET', location.replace(name, 'uploads/other'))).status).toBe(404)
    expect((await server.ask('PUT', closed, { body: content })).headers.get('location')).toBe(
      `/api/2023-12-28/v2/${name}/blobs/${digest}`,
    )
  })
})

describe('an upload at a limit or without the store', () => {
  test('answers 503 while the blob folder is gone, and goes on when it is back', async () => {
    const own = await startApi({ BERTH_STORAGE__INLINE_BYTES: '0' })
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
    const push = async (body: NonNullable<Question['body']>) =>
      own.ask('PATCH', await startUpload(own, 'app'), { body })
    const [largest, announced, streamed] = [
      await push(tooLarge.slice(1)),
      await push(tooLarge),
      await push(streamOf(tooLarge)),
    ]
    await own.stop()

    expect([largest.status, verdictOf(announced), streamed.status]).toEqual([202, '413 SIZE_INVALID', 413])
  })
})
