// The address to which failures count: X-Forwarded-For is used only from trusted proxies.
import { afterAll, describe, expect, test } from 'bun:test'
import { Guesser, newGuess } from '../support/api/guesser.ts'
import { askRaw } from '../support/clients/raw-socket.ts'
import { type MovedServer, startMoved } from '../support/server/moved-server.ts'

const burst = 20
const started: MovedServer[] = []
afterAll(() => Promise.all(started.map((server) => server.stop())))

async function serverThatTrusts(...proxies: readonly string[]): Promise<MovedServer> {
  const settings = proxies.length === 0 ? {} : { BERTH_SERVER__TRUSTED_PROXIES: proxies.join(',') }
  const server = await startMoved({ settings })
  started.push(server)
  return server
}

/** Guesses with another header each time; gives all statuses. */
async function guessAs(server: MovedServer, names: (number: number) => string, times = burst + 1) {
  const statuses: number[] = []
  for (let number = 0; number < times; number += 1) {
    statuses.push((await new Guesser(server, names(number)).bring(newGuess())).status)
  }
  return statuses
}

const refusedAtLast = [...Array.from({ length: burst }, () => 401), 429]
const neverRefused = Array.from({ length: burst + 1 }, () => 401)

describe.each([
  ['no proxy is trusted', []],
  ['others are trusted', ['10.0.0.0/8', '127.0.0.2', '::1']],
])('where %s, an invented header has no effect', (_, proxies) => {
  test.each([
    ['another address each time', (number: number) => `203.0.113.${number}`],
    ['the address of a trusted proxy', (number: number) => `203.0.113.${number}, 10.0.0.1`],
    ['another network of IPv6 each time', (number: number) => `2001:db8:0:${number}::1`],
    ['our own address', () => '127.0.0.1'],
    ['nothing', () => ''],
    ['garbage', (number: number) => `garbage ${number}`],
  ])('%s', async (_what, names) => {
    expect(await guessAs(await serverThatTrusts(...proxies), names)).toEqual(refusedAtLast)
  })
})

describe('behind proxies that are trusted', () => {
  const chain = ['127.0.0.1', '10.0.0.0/8'] as const

  test('each client has its own limits', async () => {
    const server = await serverThatTrusts(...chain)

    expect(await guessAs(server, (number) => `203.0.113.${number + 1}, 10.0.0.5, 10.0.0.6`)).toEqual(neverRefused)
  })

  test.each([
    ['addresses that it sends itself', (number: number) => `198.51.100.${number}, 203.0.113.9, 10.0.0.5`],
    ['a proxy that it invents', (number: number) => `198.51.100.${number}, 10.9.9.9, 203.0.113.9`],
    ['garbage before them', (number: number) => `"${number}", ;, 203.0.113.9, 10.0.0.5`],
    ['other proxies on the way', (number: number) => `203.0.113.9, 10.0.0.${number + 1}`],
    ['another source port', (number: number) => `203.0.113.9:${40_000 + number}, 10.0.0.5`],
    ['another spelling of its address', (number: number) => (number % 2 === 0 ? '203.0.113.9' : '::ffff:203.0.113.9')],
    ['another address of its network', (number: number) => `2001:db8:1:2:${number}::${number}`],
  ])('a client stays the same for %s', async (_, names) => {
    const server = await serverThatTrusts(...chain)

    expect(await guessAs(server, names)).toEqual(refusedAtLast)
    expect(await new Guesser(server, '203.0.113.10, 10.0.0.5').guess(1)).toEqual([401])
    expect(await new Guesser(server, '2001:db8:1:3::1').guess(1)).toEqual([401])
  })

  test.each([
    [
      'that says nothing of use',
      (number: number) => ['unknown', '', ',', '999.1.1.1', 'for=1.2.3.4'][number % 5] ?? '',
    ],
    ['that names trusted proxies alone', () => '10.0.0.7, 10.0.0.6'],
  ])('a proxy %s may speak for many: it has ten times the limits of a client', async (_, names) => {
    const server = await serverThatTrusts(...chain)

    expect(await guessAs(server, names, 10 * burst + 1)).toEqual([
      ...Array.from({ length: 10 * burst }, () => 401),
      429,
    ])
    expect(await new Guesser(server, '203.0.113.10').guess(1)).toEqual([401])
  })

  test.each([
    ['/56', 4, (number: number) => `2001:db8:1:2${(number % 256).toString(16).padStart(2, '0')}::1`],
    ['/48', 16, (number: number) => `2001:db8:1:${number.toString(16)}00::1`],
  ])('a client cannot guess on with the many networks of a %s', async (_, share, names) => {
    const server = await serverThatTrusts(...chain)
    let tries = 0
    while (tries < 1_000 && (await new Guesser(server, names(tries % 256)).bring(newGuess())).status === 401) tries += 1

    expect(tries).toBe(share * burst)
    expect(await new Guesser(server, '2001:db8:2::1').guess(1)).toEqual([401])
  })

  test('of two header lines the last is the one that the proxy wrote', async () => {
    const server = await serverThatTrusts(...chain)
    const statuses: number[] = []
    for (let number = 0; number <= burst; number += 1) {
      const lines = [
        `X-API-KEY: ${newGuess()}`,
        `X-Forwarded-For: 198.51.100.${number}`,
        'X-Forwarded-For: 203.0.113.9',
      ]
      statuses.push((await askRaw(server.port, 'GET /v2/ HTTP/1.1', lines)).status)
    }

    expect(statuses).toEqual(refusedAtLast)
  })
})
