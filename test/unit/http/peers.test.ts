import { describe, expect, test } from 'bun:test'
import { checkHost, type PeerSettings, Peers } from '../../../src/http/peers.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'

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
  return {
    origin: peers.originOf(request),
    networks: peers.networksOf(request).map(({ name, share }) => `${share} x ${name}`),
  }
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
    ['of a stranger is its own, whatever it says', stranger, '198.51.100.1', [`1 x ${stranger}`]],
    ['behind a proxy is what the proxy says', proxy, '198.51.100.1, 203.0.113.9', [`1 x ${stranger}`]],
    ['behind a proxy whose last hop is no address is the proxy', proxy, '198.51.100.1, unknown', [`10 x ${proxy}`]],
    ['behind proxies that are all trusted is the first of them', proxy, '10.0.0.3, 10.0.0.2', ['10 x 10.0.0.3']],
    [
      'of IPv6 is a /64, a /56 and a /48',
      '2001:db8:1:203::5',
      '',
      ['1 x 2001:db8:1:203::/64', '4 x 2001:db8:1:200::/56', '16 x 2001:db8:1::/48'],
    ],
    ['of a connection without an address is one for all of them', undefined, '198.51.100.1', ['1 x ']],
  ])('%s', (_, from, forwardedFor, networks) => {
    expect(seen({ 'x-forwarded-for': forwardedFor }, from).networks).toEqual(networks)
  })

  test('is not moved by other headers that proxies write', () => {
    const fields = { forwarded: 'for=198.51.100.1', 'x-real-ip': '198.51.100.1', 'cf-connecting-ip': '198.51.100.1' }

    expect(seen({ ...fields, 'x-forwarded-for': stranger }, proxy).networks).toEqual([`1 x ${stranger}`])
    expect(seen(fields, stranger).networks).toEqual([`1 x ${stranger}`])
  })

  test('of a proxy that names nobody is the proxy', () => {
    expect(seen({}, proxy).networks).toEqual([`10 x ${proxy}`])
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
