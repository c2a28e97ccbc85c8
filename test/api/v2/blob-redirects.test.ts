// storage.redirect: GET of a blob leads to the S3 store itself, at the address that others reach it by.
import { afterAll, describe, expect, test } from 'bun:test'
import { readConfig } from '../../../src/app/config.ts'
import { digestOf, pushBlob } from '../../support/api/api-images.ts'
import { type ApiServer, mounts, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { testApiKey } from '../../support/basics/test-project.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'
import { startS3FaultProxy } from '../../support/s3-faults/s3-fault-proxy.ts'
import { s3Variables } from '../../support/stores/test-stores.ts'

const stub = startS3Stub()
// The same store under another name, as it looks from outside.
const outside = await startS3FaultProxy(stub.url)
const name = 'redirects/app'
const content = '0123456789'
const lifetimeSeconds = 42

// The blobs of these tests are small, and only an object has an address in S3.
const server = await startApi({
  ...s3Variables(stub, 'berth/'),
  BERTH_STORAGE__INLINE_BYTES: '0',
  BERTH_STORAGE__S3__PUBLIC_ENDPOINT: outside.url,
  BERTH_STORAGE__REDIRECT: 'true',
  BERTH_STORAGE__REDIRECT_LIFETIME: `${lifetimeSeconds}s`,
  BERTH_STORAGE__REDIRECT_EXCEPT_NETWORKS: '10.0.0.0/8,192.0.2.7',
  BERTH_STORAGE__REDIRECT_EXCEPT_AGENTS: 'kaniko,OldClient/1',
  BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1',
})
const usual = await startApi({ ...s3Variables(stub, 'usual/'), BERTH_STORAGE__INLINE_BYTES: '0' })
const digest = await pushBlob(server, name, content)

afterAll(async () => {
  await server.stop()
  await usual.stop()
  await outside.stop()
  await stub.stop()
})

const path = `/v2/${name}/blobs/${digest}`

async function linkFrom(from: ApiServer = server, target = path): Promise<string> {
  const reply = await from.ask('GET', target)
  expect([reply.status, reply.text]).toEqual([307, ''])
  return reply.headers.get('location') ?? ''
}

describe.each(mounts)('getBlob at %s', (mount) => {
  const blob = `${mount}/${name}/blobs/${digest}`

  test('redirects to bytes that can be read with the address alone', async () => {
    const reply = await server.ask('GET', blob)

    expect(reply.status).toBe(307)
    expect(reply.headers.get('docker-content-digest')).toBe(digest)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    const link = new URL(reply.headers.get('location') ?? '')
    expect(link.origin).toBe(outside.url)
    expect(await (await fetch(link)).text()).toBe(content)
  })

  test('leads there for a range too, and the client asks for it there', async () => {
    const range = { range: 'bytes=3-5' }
    const reply = await server.ask('GET', blob, { headers: range })
    const part = await fetch(reply.headers.get('location') ?? '', { headers: range })

    expect(reply.status).toBe(307)
    expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([206, 'bytes 3-5/10', '345'])
  })

  test('answers HEAD and 304 by itself, without a request to S3', async () => {
    const heard = stub.requests().length
    const head = await server.ask('HEAD', blob)
    const unchanged = await server.ask('GET', blob, { headers: { 'if-none-match': `"${digest}"` } })

    expect([head.status, head.headers.get('content-length'), head.headers.get('location')]).toEqual([200, '10', null])
    expect([unchanged.status, unchanged.headers.get('location')]).toEqual([304, null])
    expect(stub.requests().length).toBe(heard)
  })
})

describe('clients that are not redirected', () => {
  test.each([
    ['a client at an address that is excepted', '10.1.2.3', 'docker/27', 200],
    ['a client at the other one', '192.0.2.7', 'docker/27', 200],
    ['a client that an excepted proxy of its own stands before', '203.0.113.9, 10.1.2.3', 'docker/27', 200],
    ['a client that is not excepted, whatever it says of itself', '10.1.2.3, 203.0.113.9', 'docker/27', 307],
    ['a client elsewhere', '203.0.113.9', 'docker/27', 307],
    ['an agent that is excepted', '203.0.113.9', 'kaniko/1.23', 200],
    ['an agent with the text in the middle', '203.0.113.9', 'Mozilla (OldClient/1.0)', 200],
    ['an agent with another text', '203.0.113.9', 'NewClient/1', 307],
  ])('%s', async (_, address, agent, status) => {
    const headers = { 'x-forwarded-for': address, 'user-agent': agent }
    const reply = await server.ask('GET', path, { headers })

    expect([reply.status, reply.text]).toEqual([status, status === 200 ? content : ''])
    const part = await server.ask('GET', path, { headers: { ...headers, range: 'bytes=1-2' } })
    expect(part.status).toBe(status === 200 ? 206 : 307)
  })

  test('any client, as long as the operator has not enabled redirects', async () => {
    const own = await pushBlob(usual, name, content)
    const reply = await usual.ask('GET', `/v2/${name}/blobs/${own}`)

    expect([reply.status, reply.text]).toEqual([200, content])
  })
})

test('a blob that is stored in its row is not redirected', async () => {
  const own = await startApi({ ...s3Variables(stub, 'inline/'), BERTH_STORAGE__REDIRECT: 'true' })
  const [small, large] = ['x'.repeat(16_384), 'x'.repeat(16_385)]
  const [inline, object] = [await pushBlob(own, name, small), await pushBlob(own, name, large)]
  const replies = [
    await own.ask('GET', `/v2/${name}/blobs/${inline}`),
    await own.ask('GET', `/v2/${name}/blobs/${inline}`, { headers: { range: 'bytes=0-0' } }),
    await own.ask('GET', `/v2/${name}/blobs/${object}`),
  ]
  await own.stop()

  expect(replies.map(({ status }) => status)).toEqual([200, 206, 307])
})

describe('the address', () => {
  test('is good for as long as it says, and for this object alone', async () => {
    const link = new URL(await linkFrom())
    expect(link.searchParams.get('X-Amz-Expires')).toBe(String(lifetimeSeconds))
    stub.moveClock((lifetimeSeconds - 5) * 1000)
    expect((await fetch(link)).status).toBe(200)
    stub.moveClock(10_000)
    expect((await fetch(link)).status).toBe(403)
    stub.moveClock(-(lifetimeSeconds + 5) * 1000)

    const other = new URL(link)
    other.pathname = other.pathname.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    expect((await fetch(other)).status).toBe(403)
    expect((await fetch(link, { method: 'DELETE' })).status).toBe(403)
    expect((await fetch(link, { method: 'PUT', body: 'x' })).status).toBe(403)
    expect(await (await fetch(link)).text()).toBe(content)
  })

  test('holds nothing that the caller or the registry keeps secret', async () => {
    const keyed = await server.ask('GET', `${path}?apiKey=${testApiKey}`, { key: 'none' })
    const link = keyed.headers.get('location') ?? ''

    expect(keyed.status).toBe(307)
    expect(keyed.headers.get('referrer-policy')).toBe('no-referrer')
    for (const text of [link, decodeURIComponent(link), await linkFrom()]) {
      expect(text).not.toContain(testApiKey)
      expect(text).not.toContain(stub.secretKey)
      expect(text.toLowerCase()).not.toContain('apikey')
    }
  })

  test('is not given to callers without the right to pull, nor for a missing blob', async () => {
    const person = await addPerson(server, { name: 'without-roles', roles: [] })
    const refused = await server.ask('GET', path, { key: person })
    const anonymous = await server.ask('GET', path, { key: 'none' })
    const absent = await server.ask('GET', `/v2/${name}/blobs/${digestOf('absent')}`)

    expect([refused.status, anonymous.status, absent.status]).toEqual([403, 401, 404])
    for (const reply of [refused, anonymous, absent]) expect(reply.headers.get('location')).toBeNull()
  })
})

const bucket = { BERTH_STORAGE__S3__BUCKET: 'layers', BERTH_STORAGE__REDIRECT: 'true' }
const hour = { BERTH_GARBAGE__QUARANTINE: '1h' }

test.each([
  ['storage.redirect needs storage.s3.bucket', { BERTH_STORAGE__REDIRECT: 'true' }],
  [
    'garbage.quarantine must be at least storage.redirect_lifetime',
    { ...bucket, ...hour, BERTH_STORAGE__REDIRECT_LIFETIME: '2h' },
  ],
])('a configuration is refused: %s', (words, settings) => {
  expect(() => readConfig(undefined, settings)).toThrow(words)
})

test('a configuration whose addresses end with the quarantine is accepted', () => {
  const settings = { ...bucket, ...hour, BERTH_STORAGE__REDIRECT_LIFETIME: '1h' }

  expect(readConfig(undefined, settings).redirect).toBe(true)
})
