// The origin of this server, from which the addresses in challenges and the check of cookies follow.
import { expect, test } from 'bun:test'
import { Peers } from '../../../src/http/peers.ts'

const proxy = '10.0.0.1'
const outside = '203.0.113.9'
const origin = 'registry.example.com'

test.each([
  ['https', proxy, 'https://registry.example.com'],
  ['http', proxy, 'http://registry.example.com'],
  ['https', outside, 'http://registry.example.com'],
  ['https', undefined, 'http://registry.example.com'],
  ['gopher', proxy, 'http://registry.example.com'],
  ['https, http', proxy, 'http://registry.example.com'],
  ['', proxy, 'http://registry.example.com'],
])('with the forwarded scheme %p from %p is %p', (scheme, from, expected) => {
  const peers = new Peers({ publicUrl: undefined, trustedProxies: ['10.0.0.0/8'] }, () => from)
  const request = new Request('http://x/', { headers: { host: origin, 'x-forwarded-proto': scheme } })
  expect(peers.originOf(request)).toBe(expected)
})

test.each([
  [
    'the configured one, whatever the request says',
    'https://registry.example.com',
    'evil.example',
    'https://registry.example.com',
  ],
  ['otherwise the Host, and never a forwarded host', undefined, '127.0.0.1:5000', 'http://127.0.0.1:5000'],
  ['localhost without a Host', undefined, undefined, 'http://localhost'],
])('is %s', (_, publicUrl, host, expected) => {
  for (const from of [proxy, outside]) {
    const peers = new Peers({ publicUrl, trustedProxies: ['10.0.0.0/8'] }, () => from)
    const forwarded = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
    const request = new Request('http://x/', { headers: { ...forwarded, ...(host === undefined ? {} : { host }) } })
    expect([from, peers.originOf(request)]).toEqual([from, expected])
  }
})
