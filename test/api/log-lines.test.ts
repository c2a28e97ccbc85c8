// What the server says of each request, as an operator reads it: one JSON line. That no secret is in it is
// held by ../faults/canary.test.ts.
import { expect, test } from 'bun:test'
import { useRunning } from '../support/basics/running.ts'
import { openSession, receivedBytes } from '../support/clients/registry-client.ts'
import { beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { basic } from '../support/server/test-server.ts'

const berth = useRunning(() => startBerth())

const findLine = (server: BerthProcess, ...texts: readonly string[]) =>
  until('the line is written', () =>
    server
      .output()
      .split('\n')
      .find((line) => texts.every((text) => line.includes(text))),
  )

/** Asks, and gives the line that the server writes about it. */
async function lineOf(method: string, path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const id = crypto.randomUUID()
  const headers = { authorization: basic('apikey', berth.apiKey), 'x-request-id': id, ...init.headers }
  const answer = await fetch(berth.url + path, { ...init, method, headers })
  expect(answer.headers.get('x-request-id')).toBe(id)
  return JSON.parse(await findLine(berth, id))
}

test('a request is one line with its id, method, route, status, bytes, duration and the fingerprint of its caller', async () => {
  const line = await lineOf('GET', '/v2/nobody/here/tags/list')

  expect(line).toMatchObject({
    level: 'info',
    msg: 'request',
    method: 'GET',
    path: '/v2/nobody/here/tags/list',
    route: 'getImageTagsList',
    status: 404,
  })
  expect(line['ms']).toBeNumber()
  expect(line['who']).toMatch(/^[0-9a-f]{12}$/)
})

test('an upload says how many bytes came, a download how many went', async () => {
  const content = 'twelve bytes'
  const digest = `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`

  const up = await lineOf('POST', `/v2/logged/app/blobs/uploads/?digest=${digest}`, { body: content })
  const down = await lineOf('GET', `/v2/logged/app/blobs/${digest}`)

  expect(up).toMatchObject({ status: 201, received: content.length })
  expect(down).toMatchObject({ status: 200, bytes: content.length })
})

test('a server that would issue tokens over plain HTTP behind a proxy with TLS logs it once, and only then', async () => {
  const warned = 'the challenge sends clients to a token endpoint over plain HTTP'
  const issuer = await startBerth({ settings: { BERTH_AUTH__CHALLENGE: 'bearer' } })
  try {
    await fetch(`${issuer.url}/v2/`)
    await fetch(`${issuer.url}/v2/`, { headers: { 'x-forwarded-proto': 'https' } })
    await fetch(`${issuer.url}/v2/`, { headers: { 'x-forwarded-proto': 'https' } })
    await until('it warns', () => issuer.output().includes(warned))
    // What is gathered is written by then.
    await Bun.sleep(200)
    expect(issuer.output().split(warned).length - 1).toBe(1)
  } finally {
    await issuer.stop()
  }
  await fetch(`${berth.url}/v2/`, { headers: { 'x-forwarded-proto': 'https' } })
  expect(berth.output()).not.toContain(warned)
})

const noPulls = 'docker does not pull without credentials'
const noOperator = 'no role of identity.roles has the right operate'
test.each([
  [noPulls, { BERTH_AUTH__ANONYMOUS_PULL: 'public/*', BERTH_AUTH__CHALLENGE: 'basic' }, true],
  [noPulls, { BERTH_AUTH__ANONYMOUS_PULL: 'public/*', BERTH_AUTH__CHALLENGE: 'bearer' }, false],
  [noOperator, { BERTH_IDENTITY__ROLES: 'admin=pull' }, true],
  [noOperator, { BERTH_IDENTITY__ROLES: 'admin=pull,boss=operate' }, false],
])('the start says that %s with %j: %p', async (words, settings, warns) => {
  const server = await startBerth({ settings })
  await server.stop()

  expect(server.output().includes(words)).toBe(warns)
})

test.each([
  ['the client closed the connection', {}, (_: BerthProcess, vanish: () => void) => vanish()],
  ['the request body arrives too slowly', { BERTH_LIMITS__BODY_WINDOW: '1s' }, () => undefined],
  [
    'the server is stopping',
    { BERTH_SERVER__DRAIN: '0s' },
    (server: BerthProcess) => void process.kill(server.pid, 'SIGTERM'),
  ],
])(
  'the line of an upload that ended early says that %s, and how many bytes are kept',
  async (reason, settings, end) => {
    const server = await startBerth({ settings })
    const session = await openSession(server, 'cut/app')
    const request = await beginRequest(server, 'PATCH', session, 'content-length', 1_000_000)
    await request.send(new Uint8Array(50_000))
    // What the server has not read when the connection ends is lost with it.
    await Bun.sleep(200)
    end(server, request.vanish)
    const line = await findLine(server, '"method":"PATCH"', '"msg":"request"')
    const { interrupted, kept, received } = JSON.parse(line)

    expect([interrupted, kept]).toEqual([reason, received])
    expect(kept).toBeGreaterThan(0)
    if (reason !== 'the server is stopping') expect(await receivedBytes(server, session)).toBe(kept)
    request.vanish()
    await server.stop()
  },
)
