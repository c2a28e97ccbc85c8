// safety.md 5.4: no credential ever in a log line, a header, a body or a row. Every secret is a canary that is looked for
// everywhere, whole, in pieces and in disguise.
import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CarrierWorld } from '../support/api/carrier-world.ts'
import { carriers } from '../support/api/carriers.ts'
import { runEveryCommand } from './canaries/canary-commands.ts'
import { askWhileBroken } from './canaries/canary-damage.ts'
import { askEverything, askOddly, manageUsers, sendOddBodies, sendRawOddities } from './canaries/canary-requests.ts'
import { CanarySearch, disguises, pieceLength } from './canaries/canary-search.ts'
import { CanaryServer, newSecret } from './canaries/canary-server.ts'

/** CI tries every operation with every carrier under both challenges (MATRIX=all). */
const isWhole = process.env['MATRIX'] === 'all'
const patienceMs = 60_000
const started: CanaryServer[] = []
afterAll(() => Promise.all(started.map((server) => server.stop())))

async function startServer(settings: Readonly<Record<string, string>> = {}): Promise<CanaryServer> {
  const server = await CanaryServer.start(settings)
  started.push(server)
  return server
}

describe.each(['basic', 'bearer'] as const)('with the %s challenge', (challenge) => {
  test(
    'no secret gets anywhere that it is not meant for',
    async () => {
      const server = await startServer({ BERTH_AUTH__CHALLENGE: challenge })
      const world = await CarrierWorld.make(server, challenge, server)
      const isChosen = (cell: number) => isWhole || cell % 2 === Number(challenge === 'basic')
      const requests = await askEverything(server, world, isChosen)
      await askOddly(server, isChosen)
      await sendOddBodies(server)
      await manageUsers(server)
      await sendRawOddities(server)

      expect(requests).toBeGreaterThan(isWhole ? 800 : 400)
      expect(await server.findLeaks()).toEqual([])
      console.log(`canaries: ${server.canaries.size} pieces, ${server.places().length} places, ${requests} requests`)
    },
    patienceMs,
  )
})

test(
  'nor from a server that is broken, nor when it stops',
  async () => {
    const server = await startServer({ BERTH_IDENTITY__CACHE: '0s', BERTH_AUTH__CHALLENGE: 'bearer' })
    await CarrierWorld.make(server, 'bearer', server)
    const statuses = await askWhileBroken(server)

    expect([...statuses]).toContain(500)
    expect([...statuses]).toContain(503)
    await server.settle()
    // Each of the ways in which it was broken has left its line.
    for (const words of ['request failed', 'holds no signing key', 'no such table', 'JSON Parse error']) {
      expect(server.berth.output()).toContain(words)
    }
    const places = server.places()
    await server.stop()
    const last = { name: 'what the server printed to its end', text: server.berth.output() }
    expect(server.findLeaksIn([...places, last])).toEqual([])
  },
  patienceMs,
)

test(
  'nor from a command',
  async () => {
    const server = await startServer()
    const runs = await runEveryCommand(server)

    expect(runs).toBeGreaterThan(20)
    expect(await server.findLeaks()).toEqual([])
  },
  patienceMs,
)

test(
  'nor from a server whose identity service echoes every request',
  async () => {
    const stub = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: echo })
    const server = await startServer({ BERTH_AUTH__URL: `http://127.0.0.1:${stub.port}`, BERTH_AUTH__CALLS: '2' })
    for (const carrier of carriers) {
      for (const answer of ['200', 'roles', '500', '302', '401', 'cut']) {
        const secret = `${newSecret()}.${answer}`
        server.canaries.add({ name: `a credential in ${carrier.name}`, secret })
        await server.askBy(carrier, secret, 'GET', '/v2/_catalog')
      }
    }
    await stub.stop(true)

    await server.settle()
    expect(server.berth.output()).toContain('"status":503')
    expect(await server.findLeaks()).toEqual([])
  },
  patienceMs,
)

/** Answers in one way or another, as the credential ends, and always with the credential in it. */
function echo(request: Request): Response {
  const heard = request.headers.get('x-api-key') ?? request.headers.get('authorization') ?? ''
  switch (heard.split('.').at(-1)) {
    case '200':
      return new Response(heard)
    case 'roles':
      return Response.json({ roles: heard, user: heard })
    case '302':
      return new Response(null, { status: 302, headers: { location: `/${encodeURIComponent(heard)}` } })
    case '401':
      return Response.json({ msg: heard }, { status: 401, headers: { 'www-authenticate': `Basic realm="${heard}"` } })
    case 'cut':
      return new Response(`{"roles":["${heard}`)
    default:
      return new Response(heard, { status: 500, statusText: heard })
  }
}

describe('the search finds', () => {
  const secret = newSecret(' ü"\\+%&')
  const search = new CanarySearch()
  search.add({ name: 'planted', secret })

  const planted = Object.entries(disguises).flatMap(([name, apply]) =>
    apply(secret).map((text, index) => [name, index, text] as const),
  )

  test.each(planted)('each piece of %s (%d)', (_name, _, text) => {
    for (let start = 0; start + pieceLength <= text.length; start += 1) {
      expect(search.find({ name: 'x', text: `..${text.slice(start, start + pieceLength)}..` })).not.toEqual([])
    }
  })

  test.each(['apikey:', 'bearer:', '{"username":"admin","password":"', 'a', 'ab'])(
    'the base64 of it behind %p',
    (before) => {
      for (const alphabet of ['base64', 'base64url'] as const) {
        const text = Buffer.from(`${before}${secret}"}`).toString(alphabet)

        expect(search.find({ name: 'x', text })).not.toEqual([])
      }
    },
  )

  test('nothing in a text without it', () => {
    expect(search.find({ name: 'x', text: newSecret().repeat(50) })).toEqual([])
  })

  test('what is planted in each of the places', async () => {
    const server = await startServer()
    expect(await server.findLeaks()).toEqual([])
    const { dataDir } = server.berth
    writeFileSync(join(dataDir, 'blobs', 'planted'), `x${Buffer.from(`apikey:${server.apiKey}`).toString('base64')}`)
    await server.ask('GET', `/v2/${server.apiKey}/tags/list`, { headers: { 'x-request-id': server.apiKey } })
    await server.ask('GET', '/v2/', { headers: { 'x-api-key': server.apiKey } })
    const leaks = (await server.findLeaks()).join('\n')

    expect(leaks).toContain('a header of the answer 401')
    expect(leaks).toContain('blobs/planted holds')
    expect(leaks).toContain('what the server printed holds')
  })
})
