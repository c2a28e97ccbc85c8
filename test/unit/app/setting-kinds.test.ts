import { describe, expect, test } from 'bun:test'
import {
  addressList,
  apiKey,
  byteCount,
  choice,
  credentialsPath,
  credentialsUrl,
  duration,
  flag,
  type Kind,
  optionalText,
  optionalUrl,
  patternList,
  roleMap,
  secret,
  serviceUrl,
  setting,
  text,
  textList,
  wholeNumber,
} from '../../../src/app/setting-kinds.ts'
import { allRights, defaultRoles } from '../../../src/identity/rights.ts'

const kinds: readonly (readonly [
  string,
  Kind<unknown>,
  good: readonly (readonly [unknown, unknown])[],
  bad: readonly unknown[],
])[] = [
  [
    'a string',
    text('x'),
    [
      ['a', 'a'],
      [5, '5'],
      [true, 'true'],
      [' ', ' '],
    ],
    ['', null, undefined, [], {}],
  ],
  [
    'a secret',
    secret(),
    [
      ['123456789012', '123456789012'],
      [123456789012, '123456789012'],
    ],
    ['', '12345678901', 5, []],
  ],
  [
    'an API key',
    apiKey(),
    [['a-key_of:20+letters!', 'a-key_of:20+letters!']],
    [
      'a-key-of-19-letters',
      'a key with spaces in it',
      'a-key,with-a-comma-in-it',
      'a-key-with-an-ümlaut-in-it',
      'a-key-with-a-zero\0-in-it',
      1e30,
      'x'.repeat(1_025),
    ],
  ],
  [
    'a flag',
    flag(true),
    [
      ['true', true],
      ['false', false],
      [false, false],
    ],
    ['', 'yes', '1', 1, 0, 'TRUE', ' true', null],
  ],
  [
    'a whole number',
    wholeNumber(5, 2, 10),
    [
      ['2', 2],
      ['10', 10],
      [7, 7],
      ['007', 7],
    ],
    ['1', '11', 1, 11, '', '-3', '+3', '3.0', 3.5, '3e0', '0x3', ' 3', '3 ', 'NaN', Infinity, '٣', null, true, [3]],
  ],
  [
    'a duration',
    duration('30s', '1s', '1m'),
    [
      ['1s', 1_000],
      ['60s', 60_000],
      [30, 30_000],
      ['1m', 60_000],
      ['2000ms', 2_000],
    ],
    ['999ms', '61s', '0', '', 'soon', '-5s', '1.5s', 0.5, null, {}],
  ],
  [
    'an amount of bytes',
    byteCount('4MiB', '1KiB', '1GiB'),
    [
      ['1KiB', 1_024],
      ['1GiB', 1_073_741_824],
      [2_048, 2_048],
    ],
    ['1023', '2GiB', '4MB', '', '-1', '4 megabytes', null, []],
  ],
  [
    'a choice',
    choice('json', 'text'),
    [
      ['json', 'json'],
      ['text', 'text'],
    ],
    ['', 'JSON', 'xml', 'toString', null, 0],
  ],
  [
    'an address',
    optionalUrl(),
    [
      ['https://registry.example.com', 'https://registry.example.com'],
      ['http://127.0.0.1:5000/', 'http://127.0.0.1:5000'],
      ['HTTPS://Registry.Example.com:443', 'https://registry.example.com'],
    ],
    [
      '',
      'registry.example.com',
      'ftp://a',
      'https://a/path',
      'https://a?x=1',
      'https://a#x',
      'https://user@a',
      'https://:word@a',
      'javascript:alert(1)',
      'https://',
      5,
      null,
    ],
  ],
  [
    'an address of credentials',
    credentialsUrl(),
    ['https://a/b?x=1', 'http://127.0.0.1:1338/role/', 'http://169.254.170.23/v1/credentials'].map((url) => [url, url]),
    ['', 'http://example.com/role', 'ftp://127.0.0.1/role', 'https://user@a/b', '/role', 5, null],
  ],
  [
    'a path of credentials',
    credentialsPath(),
    ['/v2/credentials/9c1b', '/role?id=a%20b', '/'].map((path) => [path, path]),
    ['', 'role', '//example.com/role', '/\\example.com', '/a b', '/a#b', 'http://169.254.170.2/role', 5, null],
  ],
  [
    'an address of a service',
    serviceUrl('https://identity.example.com'),
    [
      ['https://identity.example.com', 'https://identity.example.com'],
      ['https://identity.example.com/', 'https://identity.example.com'],
      ['http://127.0.0.1:5001/a/b//', 'http://127.0.0.1:5001/a/b'],
      ['HTTPS://Example.com:443/Identity', 'https://example.com/Identity'],
      ['https://example.com/a/../b', 'https://example.com/b'],
      ['http://[::1]:5001/x', 'http://[::1]:5001/x'],
    ],
    [
      '',
      'identity.example.com',
      '/identity',
      'ftp://a/b',
      'file:///etc/passwd',
      'https://a/b?x=1',
      'https://a/b#x',
      'https://user@a/b',
      'https://:word@a/b',
      'javascript:alert(1)',
      'https://',
      5,
      true,
      null,
      ['https://a'],
    ],
  ],
  [
    'a string that may be missing',
    optionalText(),
    [
      ['a', 'a'],
      [' ', ' '],
      [5, '5'],
    ],
    ['', null, undefined, [], {}],
  ],
  [
    'a list of repositories',
    patternList(),
    [
      ['', []],
      ['library/*, one/app', ['library/*', 'one/app']],
      ['*', ['*']],
      [
        ['team/*/app', 'x'],
        ['team/*/app', 'x'],
      ],
      [[], []],
    ],
    ['Team/*', 'a//b', 'library/*, UPPER', 'a**', '*/*/*/*/*', '/', 'a:b', [''], [1], [['a']], { a: 1 }, 5, true, null],
  ],
  [
    'a list of addresses',
    addressList(),
    [
      ['', []],
      ['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
      [
        ['192.0.2.1', '2001:db8::/32', '0.0.0.0/0'],
        ['192.0.2.1', '2001:db8::/32', '0.0.0.0/0'],
      ],
      [[], []],
    ],
    [
      'localhost',
      '10.0.0.0/33',
      '10.0.0.0/',
      '10.0.0.0/8/8',
      '10.0.0/8',
      '::/129',
      '10.0.0.0/-1',
      '10.0.0.1, proxy',
      '10.0.0.1-10.0.0.9',
      [''],
      [10],
      {},
      10,
      true,
      null,
    ],
  ],
  [
    'a list of strings with a default',
    textList('a', 'b'),
    [
      ['c', ['c']],
      ['', []],
      [[], []],
      [['a'], ['a']],
    ],
    [[1], { a: 1 }, 5, null],
  ],
  [
    'a list of strings',
    textList(),
    [
      ['a, b,,c ', ['a', 'b', 'c']],
      ['', []],
      [
        ['a', 'b'],
        ['a', 'b'],
      ],
      [[], []],
    ],
    [[1], [['a']], { a: 1 }, 5, null],
  ],
  [
    'a map of roles',
    roleMap(defaultRoles, allRights),
    [
      [
        'ops=pull+operate, none=',
        new Map([
          ['ops', ['pull', 'operate']],
          ['none', []],
        ]),
      ],
      [{ ops: ['pull'] }, new Map([['ops', ['pull']]])],
      [{}, new Map()],
    ],
    ['', 'ops', '=pull', 'ops=fly', 'ops=Pull', { ops: 'pull' }, { ops: ['fly'] }, { ops: [1] }, [], null, 5],
  ],
]

describe.each(kinds)('%s', (_name, kind, good, bad) => {
  test('takes what it should', () => {
    for (const [given, value] of good) expect([given, kind.parse(given)?.value]).toEqual([given, value])
  })

  test('refuses everything else', () => {
    for (const given of bad) expect([given, kind.parse(given)]).toEqual([given, undefined])
  })
})

test('a list that is not set has its default, and the reference shows it', () => {
  expect([textList('a', 'b').fallback, textList('a', 'b').fallbackText]).toEqual([['a', 'b'], 'a,b'])
  for (const kind of [textList(), patternList(), addressList()]) {
    expect([[...kind.fallback], kind.fallbackText]).toEqual([[], '[]'])
  }
})

test('a setting is known in the environment by its name in capitals', () => {
  expect(setting('server.public_url', text('x'), 'm').variable).toBe('BERTH_SERVER__PUBLIC_URL')
})
