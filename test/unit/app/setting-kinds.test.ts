import { describe, expect, test } from 'bun:test'
import {
  addressList,
  credentialsPath,
  credentialsUrl,
  optionalUrl,
  serviceUrl,
} from '../../../src/app/address-kinds.ts'
import {
  apiKey,
  byteCount,
  choice,
  duration,
  flag,
  type Kind,
  optionalText,
  patternList,
  roleMap,
  secret,
  text,
  textList,
  wholeNumber,
} from '../../../src/app/setting-kinds.ts'
import { allRights, defaultRoles } from '../../../src/identity/rights.ts'

interface Row {
  readonly kind: Kind<unknown>
  readonly takes: readonly unknown[]
  /** The values in the order of `takes`, if they differ from what is given. */
  readonly as?: readonly unknown[]
  readonly refuses: readonly unknown[]
}

const words = (line: string) => line.split(' ')
const noTexts = ['', null, undefined, [], {}]

const rows: Readonly<Record<string, Row>> = {
  'a string': { kind: text('x'), takes: ['a', 5, true, ' '], as: ['a', '5', 'true', ' '], refuses: noTexts },
  'a string that may be missing': { kind: optionalText(), takes: ['a', 5, ' '], as: ['a', '5', ' '], refuses: noTexts },
  'a secret': {
    kind: secret(),
    takes: ['123456789012', 123456789012],
    as: ['123456789012', '123456789012'],
    refuses: ['', '12345678901', 5, []],
  },
  'an API key': {
    kind: apiKey(),
    takes: ['a-key_of:20+letters!'],
    refuses: [
      ...words('a-key-of-19-letters a-key,with-a-comma-in-it a-key-with-an-ümlaut-in-it a-key-with-a-zero\0-in-it'),
      ...['a key with spaces in it', 1e30, 'x'.repeat(1_025)],
    ],
  },
  'a flag': {
    kind: flag(true),
    takes: ['true', 'false', false],
    as: [true, false, false],
    refuses: ['', 'yes', '1', 1, 0, 'TRUE', ' true', null],
  },
  'a whole number': {
    kind: wholeNumber(5, 2, 10),
    takes: ['2', '10', 7, '007'],
    as: [2, 10, 7, 7],
    refuses: [...words('1 11 -3 +3 3.0 3e0 0x3 NaN ٣'), '', ' 3', '3 ', 1, 11, 3.5, Infinity, null, true, [3]],
  },
  'a duration': {
    kind: duration('30s', '1s', '1m'),
    takes: ['1s', '60s', 30, '1m', '2000ms'],
    as: [1_000, 60_000, 30_000, 60_000, 2_000],
    refuses: [...words('999ms 61s 0 soon -5s 1.5s'), '', 0.5, null, {}],
  },
  'an amount of bytes': {
    kind: byteCount('4MiB', '1KiB', '1GiB'),
    takes: ['1KiB', '1GiB', 2_048],
    as: [1_024, 1_073_741_824, 2_048],
    refuses: ['1023', '2GiB', '4MB', '', '-1', '4 megabytes', null, []],
  },
  'a choice': {
    kind: choice('json', 'text'),
    takes: ['json', 'text'],
    refuses: ['', 'JSON', 'xml', 'toString', null, 0],
  },
  'an address': {
    kind: optionalUrl(),
    takes: words('https://registry.example.com http://127.0.0.1:5000/ HTTPS://Registry.Example.com:443'),
    as: words('https://registry.example.com http://127.0.0.1:5000 https://registry.example.com'),
    refuses: [
      ...words('registry.example.com ftp://a https://a/path https://a?x=1 https://a#x https://user@a https://:word@a'),
      ...['', 'javascript:alert(1)', 'https://', 5, null],
    ],
  },
  'an address of a service': {
    kind: serviceUrl('https://identity.example.com'),
    takes: words(
      'https://identity.example.com https://identity.example.com/ http://127.0.0.1:5001/a/b// HTTPS://Example.com:443/Identity https://example.com/a/../b http://[::1]:5001/x',
    ),
    as: words(
      'https://identity.example.com https://identity.example.com http://127.0.0.1:5001/a/b https://example.com/Identity https://example.com/b http://[::1]:5001/x',
    ),
    refuses: [
      ...words('identity.example.com /identity ftp://a/b file:///etc/passwd https://a/b?x=1 https://a/b#x https://'),
      ...['', 'https://user@a/b', 'https://:word@a/b', 'javascript:alert(1)', 5, true, null, ['https://a']],
    ],
  },
  // The token of a container is sent only by TLS, to this machine, or to the addresses of ECS and EKS.
  'an address of credentials': {
    kind: credentialsUrl(),
    takes: [
      ...words('https://credentials.example.com/role?x=1 http://localhost:1338/latest http://127.8.9.10:80/x?y=z'),
      ...words('http://[::1]:9/ http://169.254.170.2/v2/credentials/9c1b http://169.254.170.23/v1/credentials'),
      'http://[fd00:ec2::23]/v1/credentials',
    ],
    refuses: [
      ...words('http://example.com/x http://169.254.169.254/x http://169.254.170.3/x http://169.254.170.231/x'),
      ...words('http://10.0.0.1/x http://[fd00:ec2::24]/x http://127.0.0.1.example.com/ http://localhost.example.com/'),
      ...words('http://127.0.0.1@example.com/ http://user:word@127.0.0.1/ https://user@example.com/'),
      ...words('http://127.0.0.1/#x ftp://127.0.0.1/x file:///etc/passwd //127.0.0.1/x /role x'),
      ...['', 5, null],
    ],
  },
  'a path of credentials': {
    kind: credentialsPath(),
    takes: ['/v2/credentials/9c1b', '/role?id=a%20b', '/'],
    refuses: [
      ...words('role //example.com/role /\\example.com /a#b http://169.254.170.2/role'),
      ...['', '/a b', 5, null],
    ],
  },
  'a list of repositories': {
    kind: patternList(),
    takes: ['', 'library/*, one/app', '*', ['team/*/app', 'x'], []],
    as: [[], ['library/*', 'one/app'], ['*'], ['team/*/app', 'x'], []],
    refuses: [
      ...words('Team/* a//b a** */*/*/*/* / a:b'),
      ...['library/*, UPPER', [''], [1], [['a']], { a: 1 }, 5, true, null],
    ],
  },
  'a list of addresses': {
    kind: addressList(),
    takes: ['', '10.0.0.0/8, ::1, ::ffff:10.0.0.0/104', ['10.0.0.1/32', 'fd00::/8', '0.0.0.0/0', '::/0'], []],
    as: [[], ['10.0.0.0/8', '::1', '::ffff:10.0.0.0/104'], ['10.0.0.1/32', 'fd00::/8', '0.0.0.0/0', '::/0'], []],
    refuses: [
      ...words('10.0.0.0/a [::1] 10.0.0.1:80 *'),
      ...words('localhost 10.0.0.0/33 10.0.0.0/ 10.0.0.0/8/8 10.0.0/8 ::/129 10.0.0.0/-1 10.0.0.1-10.0.0.9'),
      ...['10.0.0.1, proxy', [''], [10], {}, 10, true, null],
    ],
  },
  'a list of strings': {
    kind: textList('x', 'y'),
    takes: ['a, b,,c ', '', ['a', 'b'], []],
    as: [['a', 'b', 'c'], [], ['a', 'b'], []],
    refuses: [[1], [['a']], { a: 1 }, 5, null],
  },
  'a map of roles': {
    kind: roleMap(defaultRoles, allRights),
    takes: ['ops=pull+operate, none=', { ops: ['pull'] }, {}],
    as: [{ ops: ['pull', 'operate'], none: [] }, { ops: ['pull'] }, {}].map((map) => new Map(Object.entries(map))),
    refuses: [...words('ops =pull ops=fly ops=Pull'), '', { ops: 'pull' }, { ops: ['fly'] }, { ops: [1] }, [], null, 5],
  },
}

describe.each(Object.entries(rows))('%s', (_, { kind, takes, as: values = takes, refuses }) => {
  test('is taken as it should be', () => {
    expect(values).toHaveLength(takes.length)
    for (const [at, given] of takes.entries()) expect([given, kind.parse(given)?.value]).toEqual([given, values[at]])
  })

  test('is not anything else', () => {
    for (const given of refuses) expect([given, kind.parse(given)]).toEqual([given, undefined])
  })
})

test('a list that is not set has its default, and the reference shows it', () => {
  expect([textList('a', 'b').fallback, textList('a', 'b').fallbackText]).toEqual([['a', 'b'], 'a,b'])
  for (const kind of [textList(), patternList(), addressList()]) {
    expect([[...kind.fallback], kind.fallbackText]).toEqual([[], '[]'])
  }
})
