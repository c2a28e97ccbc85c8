import { describe, expect, test } from 'bun:test'
import {
  blob,
  blobDigest,
  GuardedServer,
  manifestDigest,
  repository,
  verdictOf,
} from '../support/server/guarded-server.ts'

const guard = new GuardedServer()
const path = `/v2/${repository}/blobs/${blobDigest}`
const size = blob.length

async function bytesFor(
  range: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly [number, Uint8Array]> {
  const answer = await guard.fetch(path, { headers: { range, ...headers } })
  return [answer.status, new Uint8Array(await answer.arrayBuffer())]
}

describe('a part of a blob', () => {
  test.each([
    ['bytes=0-0', 0, 1],
    ['bytes=1-99998', 1, size - 1],
    [`bytes=${size - 1}-`, size - 1, size],
    ['bytes=-1', size - 1, size],
    [`bytes=-${size}`, 0, size],
    [`bytes=-${size + 5}`, 0, size],
    ['bytes=50000-99999999999999999999999', 50_000, size],
  ])('%p gives exactly its bytes', async (range, from, to) => {
    const [status, bytes] = await bytesFor(range)
    expect(status).toBe(206)
    expect(Buffer.compare(bytes, blob.subarray(from, to))).toBe(0)
  })

  test.each([`bytes=${size}-`, `bytes=${size}-${size + 5}`, 'bytes=-0', 'bytes=5-4', `bytes=${'9'.repeat(300)}-`])(
    '%p cannot be met, and the size is told',
    async (range) => {
      const answer = await guard.fetch(path, { headers: { range } })
      expect(answer.headers.get('content-range')).toBe(`bytes */${size}`)
      expect(await verdictOf(answer)).toBe('416 SIZE_INVALID')
    },
  )

  test.each([
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'bytes=0-1,5-6',
    `bytes=${Array.from({ length: 1_000 }, (_, at) => `${at * 2}-${at * 2}`).join(',')}`,
    'lines=0-5',
    'bytes 0-5',
    'bytes=0x0-0x5',
    'bytes=--5',
    'bytes=0-5-9',
    '0-5',
  ])('%p is none, so all of it comes', async (range) => {
    const [status, bytes] = await bytesFor(range)
    expect(status).toBe(200)
    expect(Buffer.compare(bytes, blob)).toBe(0)
  })

  test('of another version is not given', async () => {
    expect((await bytesFor('bytes=0-5', { 'if-range': '"sha256:other"' }))[0]).toBe(200)
    expect((await bytesFor('bytes=0-5', { 'if-range': 'Sat, 21 Nov 2026 00:00:00 GMT' }))[0]).toBe(200)
    expect((await bytesFor('bytes=0-5', { 'if-range': `"${blobDigest}"` }))[0]).toBe(206)
  })

  test('of a manifest is not given: it comes whole', async () => {
    const answer = await guard.fetch(`/v2/${repository}/manifests/${manifestDigest}`, {
      headers: { range: 'bytes=0-5' },
    })
    expect(answer.status).toBe(200)
  })

  guard.losesNothing()
})

describe('a page size', () => {
  const lists = ['/v2/_catalog', `/v2/${repository}/tags/list`]

  test.each([
    '',
    '-1',
    '+1',
    '1.5',
    '1e3',
    '1e999',
    '0x10',
    'all',
    '1,2',
    ' 1',
    '%00',
    '1%00',
    '%D9%A1',
    'NaN',
    'Infinity',
    '1n',
  ])('%p is refused by every list', async (n) => {
    for (const list of lists) {
      expect(await verdictOf(await guard.fetch(`${list}?n=${n.replaceAll('+', '%2B')}`))).toBe('400 UNSUPPORTED')
    }
  })

  test.each(['1000', '1001', '2147483647', '2147483648', '4294967296', '9007199254740993', '9'.repeat(400), '0001'])(
    '%p is served, and never as more than the longest page',
    async (n) => {
      for (const list of lists) {
        const answer = await guard.fetch(`${list}?n=${n}`)
        expect([list, answer.status]).toEqual([list, 200])
      }
    },
  )

  test('of nothing is a page of nothing', async () => {
    expect((await (await guard.fetch(`${lists[0]}?n=0`)).json()) as unknown).toEqual({ repositories: [] })
    expect((await (await guard.fetch(`${lists[1]}?n=0`)).json()) as unknown).toEqual({ name: repository, tags: [] })
  })

  test('that is given twice is served as one of them', async () => {
    for (const list of lists) expect((await guard.fetch(`${list}?n=1&n=500`)).status).toBe(200)
  })

  guard.losesNothing()
})

describe('where a page begins', () => {
  test.each([
    '',
    '%00',
    '%FF',
    '%F0%9F%92%A5',
    "'; DROP TABLE tags; --",
    '" OR 1=1 --',
    '%25',
    '_',
    '\\',
    'z'.repeat(4_000),
    '../../../../etc/passwd',
    '{{7*7}}',
    '%0d%0aX-Injected: 1',
  ])('%p is only compared', async (last) => {
    const query = last.includes('%') ? `last=${last.replaceAll(' ', '%20')}` : new URLSearchParams({ last }).toString()
    for (const list of [
      '/v2/_catalog',
      `/v2/${repository}/tags/list`,
      `/v2/${repository}/referrers/${manifestDigest}`,
    ]) {
      const answer = await guard.fetch(`${list}?${query}`)
      expect([list, answer.status, answer.headers.get('x-injected')]).toEqual([list, 200, null])
    }
  })

  test.each(["'; DROP TABLE manifests; --", '%', '%00', '\\', 'a'.repeat(4_000)])(
    'an artifact type of %p finds nothing',
    async (type) => {
      const query = new URLSearchParams({ artifactType: type === '%00' ? '\0' : type })
      const answer = await guard.fetch(`/v2/${repository}/referrers/${manifestDigest}?${query}`)
      expect([answer.status, ((await answer.json()) as { manifests: unknown[] }).manifests]).toEqual([200, []])
    },
  )

  guard.losesNothing()
})
