import { describe, expect, test } from 'bun:test'
import { type PeerSettings, Peers } from '../../../src/http/peers.ts'

const proxy = '10.0.0.1'
const outside = '203.0.113.9'

/** What is believed of a request with these headers, from this address. */
function seen(
  fields: Readonly<Record<string, string>>,
  from: string | undefined,
  settings: Partial<PeerSettings> = {},
) {
  const peers = new Peers({ publicUrl: undefined, trustedProxies: ['10.0.0.0/8'], ...settings }, () => from)
  const request = new Request('http://x/', { headers: fields })
  return {
    origin: peers.originOf(request),
    networks: peers.networksOf(request).map(({ name, share }) => `${share} x ${name}`),
  }
}

describe('the origin of this server', () => {
  test('is the configured origin, whatever the request says', () => {
    const settings = { publicUrl: 'https://registry.example.com' }
    const fields = { host: 'evil.example', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'evil.example' }

    expect(seen(fields, proxy, settings).origin).toBe('https://registry.example.com')
  })

  test('is otherwise the Host of the request, and never a forwarded host', () => {
    const fields = { host: '127.0.0.1:5000', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }

    expect(seen(fields, outside).origin).toBe('http://127.0.0.1:5000')
    expect(seen(fields, proxy).origin).toBe('http://127.0.0.1:5000')
    expect(seen({ 'x-forwarded-host': 'evil.example' }, proxy).origin).toBe('http://localhost')
  })

  test.each([
    ['https', proxy, 'https://registry.example.com'],
    ['http', proxy, 'http://registry.example.com'],
    ['https', outside, 'http://registry.example.com'],
    ['https', undefined, 'http://registry.example.com'],
    ['gopher', proxy, 'http://registry.example.com'],
    ['https, http', proxy, 'http://registry.example.com'],
    ['', proxy, 'http://registry.example.com'],
  ])('has the scheme %p from %p as %p', (scheme, from, origin) => {
    expect(seen({ host: 'registry.example.com', 'x-forwarded-proto': scheme }, from).origin).toBe(origin)
  })

  test('ignores a forwarded scheme unless the proxy is trusted', () => {
    const fields = { host: 'registry.example.com', 'x-forwarded-proto': 'https' }

    expect(seen(fields, '127.0.0.1', { trustedProxies: [] }).origin).toBe('http://registry.example.com')
  })
})
