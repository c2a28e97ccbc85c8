// postUpload, patchUpload, putUpload: distribution-spec end-4a, end-4b, end-5, end-6.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, startUpload } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'uploads/deep/app'
const content = 'hello, world'
const digest = digestOf(content)
const sessionPattern = /\/blobs\/uploads\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe.each(mounts)('an upload at %s', (mount) => {
  const start = () => startUpload(server, name, mount)
  const patch = (location: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
    server.ask('PATCH', location, { body, headers })
  const put = (location: string, body = '', wanted = digest) =>
    server.ask('PUT', `${location}?digest=${wanted}`, { body })

  test('begins with 202 and its address, in the same mount', async () => {
    const reply = await server.ask('POST', `${mount}/${name}/blobs/uploads/`)

    expect([reply.status, reply.text]).toEqual([202, ''])
    expect(ownHeaders(reply)).toEqual(['content-length', 'docker-upload-uuid', 'location', 'range'])
    expect(reply.headers.get('location')).toStartWith(`${mount}/${name}/blobs/uploads/`)
    expect(reply.headers.get('location')).toMatch(sessionPattern)
    expect(reply.headers.get('location')).toEndWith(`${reply.headers.get('docker-upload-uuid')}`)
    expect(reply.headers.get('range')).toBe('0-0')
  })

  test('begins without the slash at the end, too', async () => {
    expect((await server.ask('POST', `${mount}/${name}/blobs/uploads`)).status).toBe(202)
  })

  test.each(['application/json', 'application/octet-stream'])('begins whatever the content type: %s', async (type) => {
    const reply = await server.ask('POST', `${mount}/${name}/blobs/uploads/`, { headers: { 'content-type': type } })

    expect(reply.status).toBe(202)
  })

  test.each(['sha256', 'sha512'])('begins for the digest algorithm %s', async (algorithm) => {
    expect((await server.ask('POST', `${mount}/${name}/blobs/uploads/?digest-algorithm=${algorithm}`)).status).toBe(202)
  })

  test('does not begin for an algorithm with which it could never be closed', async () => {
    const reply = await server.ask('POST', `${mount}/${name}/blobs/uploads/?digest-algorithm=md5`)

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'DIGEST_INVALID' }] }])
  })

  test('takes the blob as one stream and is closed by an empty PUT', async () => {
    const location = await start()
    const streamed = await patch(location, content)
    const closed = await put(location)

    expect([streamed.status, streamed.headers.get('range'), streamed.text]).toEqual([202, '0-11', ''])
    expect([closed.status, closed.text, closed.headers.get('docker-content-digest')]).toEqual([201, '', digest])
    expect(closed.headers.get('location')).toBe(`${mount}/${name}/blobs/${digest}`)
  })

  test('takes the whole blob with the closing PUT', async () => {
    const reply = await put(await start(), content)

    expect([reply.status, ownHeaders(reply)]).toEqual([201, ['content-length', 'docker-content-digest', 'location']])
    expect((await server.ask('GET', `${mount}/${name}/blobs/${digest}`)).text).toBe(content)
  })

  test('takes the blob in chunks, the last one with the closing PUT', async () => {
    const location = await start()
    const first = await patch(location, 'hello', { 'content-range': '0-4' })
    const second = await patch(location, ', wor', { 'content-range': '5-9' })
    const last = await server.ask('PUT', `${location}?digest=${digest}`, {
      body: 'ld',
      headers: { 'content-range': '10-11' },
    })

    expect([first.headers.get('range'), second.headers.get('range'), last.status]).toEqual(['0-4', '0-9', 201])
    expect(first.headers.get('location')).toBe(location)
  })

  test('takes a body without a length', async () => {
    const location = await start()
    const reply = await server.ask('PATCH', location, { body: new Blob([content]).stream() })

    expect([reply.status, reply.headers.get('range')]).toEqual([202, '0-11'])
  })

  test('takes an empty blob', async () => {
    expect((await put(await start(), '', digestOf(''))).status).toBe(201)
  })

  test('is closed by a sha512 digest', async () => {
    const wanted = digestOf(content, 'sha512')
    const location = await start()
    await patch(location, content)
    const reply = await put(location, '', wanted)

    expect([reply.status, reply.headers.get('docker-content-digest')]).toEqual([201, wanted])
  })

  test('can be closed again with the same digest, and answers 201 again', async () => {
    const location = await start()
    const replies = [await put(location, content), await put(location, content), await put(location)]

    expect(replies.map((reply) => reply.status)).toEqual([201, 201, 201])
    expect(replies.map((reply) => reply.headers.get('location'))).toEqual(
      replies.map(() => `${mount}/${name}/blobs/${digest}`),
    )
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

  test.each(['', '?digest=', '?digest=sha256:short', '?digest=md5:d41d8cd98f00b204e9800998ecf8427e'])(
    'is not closed by "%s", and stays open',
    async (query) => {
      const location = await start()
      await patch(location, content)
      const reply = await server.ask('PUT', location + query)

      expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'DIGEST_INVALID' }] }])
      expect((await put(location)).status).toBe(201)
    },
  )

  test('ends when its content is not what the digest says', async () => {
    const location = await start()
    const reply = await put(location, 'other content')

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'DIGEST_INVALID' }] }])
    expect((await server.ask('GET', location)).status).toBe(404)
  })

  test.each(['3-7', '1-5', '100-104'])(
    'refuses the chunk %s when it stands at 2, and tells where it stands',
    async (range) => {
      const location = await start()
      await patch(location, 'he')
      const reply = await patch(location, 'llo, ', { 'content-range': range })

      expect([reply.status, reply.headers.get('range'), reply.headers.get('location')]).toEqual([416, '0-1', location])
      expect(reply.json()).toMatchObject({ errors: [{ code: 'BLOB_UPLOAD_INVALID' }] })
    },
  )

  test.each(['bytes 0-4/12', '4-0', 'x-y', '0', '-4'])('refuses the content range "%s"', async (range) => {
    const location = await start()
    const reply = await patch(location, 'hello', { 'content-range': range })

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'BLOB_UPLOAD_INVALID' }] }])
    expect((await server.ask('GET', location)).headers.get('range')).toBe('0-0')
  })

  test('refuses a chunk that is not as long as its content range, and appends nothing of it', async () => {
    const location = await start()
    const reply = await patch(location, 'hello', { 'content-range': '0-9' })

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'SIZE_INVALID' }] }])
    expect((await server.ask('GET', location)).headers.get('range')).toBe('0-0')
  })

  test('refuses a chunk without a length that turns out not as long as its content range', async () => {
    const location = await start()
    const body = new Blob(['hello']).stream()
    const reply = await server.ask('PATCH', location, { body, headers: { 'content-range': '0-9' } })

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'SIZE_INVALID' }] }])
    expect((await server.ask('GET', location)).headers.get('range')).toBe('0-0')
  })
})
