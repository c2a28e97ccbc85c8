import { describe, expect, test } from 'bun:test'
import { checkHost, type PeerSettings, Peers } from '../../../src/http/peers.ts'
import { refusalOf } from '../../support/refusal-of.ts'

const proxy = '10.0.0.1'
const stranger = '203.0.113.9'

/** What is believed of a request with these headers, from this address. */
function seen(
  fields: Readonly<Record<string, string>>,
  from: string | undefined,
  settings: Partial<PeerSettings> = {},
) {
  const peers = new Peers({ publicUrl: undefined, trustedProxies: ['10.0.0.0/8'], ...settings }, () => from)
  const request = new Request('http://x/', { headers: fields })
  return { origin: peers.originOf(request), network: peers.networkOf(request) }
}

describe('the address by which we were reached', () => {
  test('is the configured one, whatever the request says', () => {
    const settings = { publicUrl: 'https://registry.example.com' }
    const fields = { host: 'evil.example', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'evil.example' }

    expect(seen(fields, proxy, settings).origin).toBe('https://registry.example.com')
  })

  test('is else the one that the request named, and never a forwarded one', () => {
    const fields = { host: '127.0.0.1:5000', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }

    expect(seen(fields, stranger).origin).toBe('http://127.0.0.1:5000')
    expect(seen(fields, proxy).origin).toBe('http://127.0.0.1:5000')
    expect(seen({ 'x-forwarded-host': 'evil.example' }, proxy).origin).toBe('http://localhost')
  })

  test.each([
    ['https', proxy, 'https://registry.example.com'],
    ['http', proxy, 'http://registry.example.com'],
    ['https', stranger, 'http://registry.example.com'],
    ['https', undefined, 'http://registry.example.com'],
    ['gopher', proxy, 'http://registry.example.com'],
    ['https, http', proxy, 'http://registry.example.com'],
    ['', proxy, 'http://registry.example.com'],
  ])('has the scheme %p from %p as %p', (scheme, from, origin) => {
    expect(seen({ host: 'registry.example.com', 'x-forwarded-proto': scheme }, from).origin).toBe(origin)
  })

  test('has no scheme from anybody where no proxy is trusted', () => {
    const fields = { host: 'registry.example.com', 'x-forwarded-proto': 'https' }

    expect(seen(fields, '127.0.0.1', { trustedProxies: [] }).origin).toBe('http://registry.example.com')
  })
})

describe("the client's network", () => {
  test.each([
    ['of a stranger is his own, whatever he says', stranger, '198.51.100.1', stranger],
    ['behind a proxy is what the proxy says', proxy, '198.51.100.1, 203.0.113.9', stranger],
    ['behind a proxy that says nothing of use is that of nobody', proxy, 'unknown', undefined],
    ['of IPv6 is the first half of the address', '2001:db8::5', '', '2001:db8:0:0::/64'],
    ['of IPv6 behind a proxy too', proxy, '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['of a connection without an address is one for all of them', undefined, '198.51.100.1', ''],
  ])('%s', (_, from, forwardedFor, network) => {
    expect(seen({ 'x-forwarded-for': forwardedFor }, from).network).toBe(network)
  })

  test('is not moved by other headers that proxies write', () => {
    const fields = { forwarded: 'for=198.51.100.1', 'x-real-ip': '198.51.100.1', 'cf-connecting-ip': '198.51.100.1' }

    expect(seen({ ...fields, 'x-forwarded-for': stranger }, proxy).network).toBe(stranger)
    expect(seen(fields, stranger).network).toBe(stranger)
  })

  test('of a proxy that names nobody is that of nobody', () => {
    expect(seen({}, proxy).network).toBeUndefined()
  })
})

describe('a Host', () => {
  test.each([
    null,
    'localhost',
    '127.0.0.1',
    '127.0.0.1:5000',
    'Registry.Example.COM:443',
    '[::1]',
    '[fe80::1]:5000',
    'a_b',
  ])('%p is one', (host) => {
    expect(refusalOf(() => checkHost(host))).toBeUndefined()
  })

  test.each([
    '',
    'a, b',
    'a,a',
    'a b',
    'a/b',
    'a?b',
    'a#b',
    'u@h',
    'u:p@h',
    'a:',
    'a:b',
    ':80',
    '[::1',
    '::1',
    'a"',
    '<a>',
    'a\\b',
    'é',
    'a%20b',
  ])('%p is none', (host) => {
    expect(refusalOf(() => checkHost(host))).toBe('host-invalid')
  })
})
