import { describe, expect, test } from 'bun:test'
import { networksOf, TrustedProxies } from '../../../src/lib/ip-addresses.ts'

describe('a network', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:0000::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3::', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['1::2:3:4:5:192.0.2.1', '1:0:2:3::/64'],
    ['', ''],
    ['not an address', 'not an address'],
  ])('of %p is %p', (address, network) => {
    expect(networksOf(address)[0]).toBe(network)
  })

  test('of IPv6 is within two wider ones', () => {
    const last = '2001:db8:1:2ff:ffff:ffff:ffff:ffff'
    expect(networksOf('2001:db8:1:203::1')).toEqual(['2001:db8:1:203::/64', '2001:db8:1:200::/56', '2001:db8:1::/48'])
    expect(networksOf(last)).toEqual(['2001:db8:1:2ff::/64', '2001:db8:1:200::/56', '2001:db8:1::/48'])
    expect(networksOf('192.0.2.1')).toEqual(['192.0.2.1'])
  })
})

describe('trusted proxies', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '192.0.2.7', 'fd00::/8'])

  test.each(['10.0.0.0', '10.255.255.255', '192.0.2.7', 'fd12:3::4', '::ffff:10.1.2.3', '::ffff:a01:203'])(
    'include %p',
    (address) => {
      expect(proxies.has(address)).toBe(true)
    },
  )

  test.each([
    '11.0.0.0',
    '192.0.2.8',
    'fe00::1',
    '::ffff:11.1.2.3',
    '::10.1.2.3',
    '',
    '10.1',
    'unix:',
    '10.0.0.1.evil',
  ])('do not include %p', (address) => {
    expect(proxies.has(address)).toBe(false)
  })

  test('may be given as mapped addresses, or be none', () => {
    const mapped = new TrustedProxies(['::ffff:10.0.0.0/104', '::ffff:192.0.2.7'])
    const known = ['10.9.8.7', '192.0.2.7', '::ffff:10.1.1.1', '11.0.0.1'].map((one) => mapped.has(one))
    expect(known).toEqual([true, true, true, false])
    expect(new TrustedProxies([]).clientOf('127.0.0.1', '203.0.113.9')).toBe('127.0.0.1')
  })

  describe('the client', () => {
    test.each([
      ['without the header', '10.0.0.1', null, '10.0.0.1'],
      ['of an untrusted peer that invents one', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
      ['of an untrusted peer that invents a proxy', '203.0.113.9', '10.0.0.2, 10.0.0.3', '203.0.113.9'],
      ['behind one proxy', '10.0.0.1', '203.0.113.9', '203.0.113.9'],
      ['that invents a hop before its own', '10.0.0.1', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
      ['that invents many', '10.0.0.1', `${'198.51.100.1, '.repeat(500)}203.0.113.9`, '203.0.113.9'],
      ['that invents a proxy before its own', '10.0.0.1', '198.51.100.1, 10.0.0.9, 203.0.113.9', '203.0.113.9'],
      ['behind three proxies', '10.0.0.1', '203.0.113.9, 192.0.2.7, 10.2.2.2', '203.0.113.9'],
      ['behind three, with an invention', '10.0.0.1', '1.1.1.1, 203.0.113.9, 192.0.2.7, 10.2.2.2', '203.0.113.9'],
      ['behind a proxy that is not trusted', '10.0.0.1', '203.0.113.9, 198.51.100.1', '198.51.100.1'],
      ['that is a proxy itself', '10.0.0.1', '10.0.0.2', '10.0.0.2'],
      ['behind a proxy of IPv6', 'fd00::1', '2001:db8::5', '2001:db8::5'],
      ['that a socket for both shows as mapped', '::ffff:10.0.0.1', '203.0.113.9', '203.0.113.9'],
      ['that a proxy shows as mapped', '10.0.0.1', '::ffff:203.0.113.9', '203.0.113.9'],
      ['whose proxy adds the port', '10.0.0.1', '203.0.113.9:51234', '203.0.113.9'],
      ['of IPv6 whose proxy adds the port', '10.0.0.1', '[2001:db8::5]:51234', '2001:db8::5'],
      ['of IPv6 in brackets', '10.0.0.1', '[2001:db8::5]', '2001:db8::5'],
      ['of IPv6 without brackets', '10.0.0.1', '2001:db8::5', '2001:db8::5'],
      ['without spaces between the hops', '10.0.0.1', '203.0.113.9,10.2.2.2', '203.0.113.9'],
    ])('%s', (_, peer, forwardedFor, client) => {
      expect(proxies.clientOf(peer, forwardedFor)).toBe(client)
    })

    // The last proxy that can be believed stands for all that is behind it.
    test.each([
      '',
      ' ',
      ',',
      'unknown',
      '203.0.113.9,',
      '203.0.113.9, unknown',
      '203.0.113.9;10.0.0.1',
      '203.0.113',
      '203.0.113.9.9',
      '999.0.0.1',
      '[2001:db8::5',
      '[2001:db8::5]x',
      '203.0.113.9:port',
      'for=203.0.113.9',
      '"203.0.113.9"',
      '::gggg',
      '_hidden',
    ])('in the garbage %p is the proxy', (forwardedFor) => {
      expect(proxies.clientOf('10.0.0.1', forwardedFor)).toBe('10.0.0.1')
    })

    test('is found behind invalid addresses', () => {
      expect(proxies.clientOf('10.0.0.1', 'garbage, "quoted, ;, 203.0.113.9')).toBe('203.0.113.9')
    })
  })
})
