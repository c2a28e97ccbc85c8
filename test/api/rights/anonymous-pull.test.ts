// Anonymous pull, by pattern. An anonymous caller may read the open repositories and learns nothing about others.
import { afterAll, describe, expect, test } from 'bun:test'
import { pushBlob } from '../../support/api/api-images.ts'
import { type ApiServer, api, mounts, type Reply, startApi } from '../../support/api/api-server.ts'
import {
  askFor,
  emptyStock,
  exampleOf,
  fillStock,
  type Operation,
  operations,
} from '../../support/api/route-examples.ts'
import { askedBy } from '../../support/api/wired-registry.ts'
import { testApiKey } from '../../support/basics/test-project.ts'
import { basic } from '../../support/server/test-server.ts'
import { countRows } from '../../support/stores/store-audit.ts'

const closed = await startApi()
const open = await startApi({ BERTH_AUTH__ANONYMOUS_PULL: 'open/*,exact/one' })
afterAll(() => Promise.all([closed.stop(), open.stop()]))

const stocks = {
  closed: await fillStock(closed, 'open/app'),
  open: await fillStock(open, 'open/app'),
  exact: await fillStock(open, 'exact/one'),
  other: await fillStock(open, 'other/app'),
}
const anonymous = askedBy(open, 'none')
const challenge = 'Basic realm="Berth", charset="UTF-8"'
const body401 =
  '{"errors":[{"code":"UNAUTHORIZED","message":"authentication required","detail":{}}],"msg":"authentication required"}'

const guarded = operations.filter(({ route }) => route.access !== 'anyone')
// What manages images names their users, so it is for known callers only.
const isOpen = ({ route, mount }: Operation) => mount !== '' && route.access === 'repository' && route.right === 'pull'
const pulls = guarded.filter(isOpen)
const others = guarded.filter((operation) => !isOpen(operation))
const named = (table: readonly Operation[]) => table.map((operation) => [operation.title, operation] as const)

function expectAsked(reply: Reply, { method, mount }: Pick<Operation, 'method' | 'mount'>): void {
  expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, challenge])
  if (mount !== '') expect(reply.text).toBe(method === 'HEAD' ? '' : body401)
}

test('the tables have what they are made for', () => {
  expect([pulls.length, others.length > 30]).toEqual([16, true])
})

describe('an anonymous caller, where some repositories are open', () => {
  test.each(named(pulls))('is served in one that matches: %s', async (_, operation) => {
    for (const stock of [stocks.open, stocks.exact]) {
      expect((await askFor(anonymous, operation, stock)).status).toBe(exampleOf(operation.route).status)
    }
  })

  test.each(named(pulls))('is told what is not there in one that matches: %s', async (_, operation) => {
    const status = operation.route.operationId === 'getImageDigestReferrers' ? 200 : 404

    expect((await askFor(anonymous, operation, emptyStock('open/none'))).status).toBe(status)
  })

  test.each(named(pulls))(
    'is asked for credentials in any other, whether it exists or not: %s',
    async (_, operation) => {
      for (const name of ['other/none', 'open', 'exact/one/more', 'exact/on', 'opens/app']) {
        expectAsked(await askFor(anonymous, operation, emptyStock(name)), operation)
      }
      expectAsked(await askFor(anonymous, operation, stocks.other), operation)
    },
  )

  test.each(named(others))('is asked for credentials by everything else: %s', async (_, operation) => {
    for (const stock of [stocks.open, stocks.other, emptyStock('open/none'), emptyStock('other/none')]) {
      expectAsked(await askFor(anonymous, operation, stock), operation)
    }
  })

  test.each([
    ['GET', '/nothing'],
    ['GET', '/open/app/nothing'],
    ['GET', '/open/app/manifests'],
    ['GET', '/_nothing'],
    ['POST', '/_catalog'],
    ['PUT', '/open/app/tags/list'],
    ['DELETE', '/open/app/tags/list'],
    ['GET', '/NOT/valid/tags/list'],
    ['GET', '/open/-/tags/list'],
    ['GET', ''],
    ['GET', '/_catalog?n=many'],
  ])('is asked for credentials at %s %s', async (method, path) => {
    for (const mount of mounts) expectAsked(await anonymous.ask(method, mount + path), { method, mount })
  })

  test('mounts nothing from an open repository, and opens no session', async () => {
    const digest = await pushBlob(open, 'open/app', 'may be pulled by all')
    const before = countRows(open.dataDir, 'uploads')
    for (const query of [`mount=${digest}&from=open/app`, `mount=${digest}`]) {
      expectAsked(await anonymous.ask('POST', `/v2/open/new/blobs/uploads/?${query}`), { method: 'POST', mount: '/v2' })
    }

    expect(countRows(open.dataDir, 'uploads')).toBe(before)
  })
})

describe('credentials, where anonymous callers may pull', () => {
  const path = '/v2/open/app/manifests/v1'
  const unknownKey = 'berth_nobodys_key_0123456789'

  test.each<readonly [string, Readonly<Record<string, string>>, string]>([
    ['an unknown key', { 'x-api-key': unknownKey }, ''],
    ['an unknown key as Basic', { authorization: basic('apikey', unknownKey) }, ''],
    ['a token that is none', { authorization: 'Bearer nonsense' }, ''],
    ['a user with a password', { authorization: basic('admin', 'whatever it is') }, ''],
    ['a user with an empty password', { authorization: basic('admin', '') }, ''],
    ['an empty Bearer', { authorization: 'Bearer ' }, ''],
    ['an empty key', { 'x-api-key': '' }, ''],
    ['another scheme', { authorization: 'Negotiate abcd' }, ''],
    ['an empty cookie', { cookie: 'svc-auth=' }, ''],
    ['an unknown cookie', { cookie: 'svc-auth=nonsense' }, ''],
    ['an empty key in the query', {}, '?apiKey='],
    ['an unknown key in the query', {}, `?apiKey=${unknownKey}`],
  ])('that are bad are refused and do not pass for none: %s', async (_, headers, query) => {
    const reply = await open.ask('GET', path + query, { key: 'none', headers })

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, challenge])
  })

  test.each(['Basic Og==', 'basic Og==', 'BASIC Og=='])('that are empty count as none: %s', async (authorization) => {
    const statusAt = async (server: ApiServer, path: string) =>
      (await server.ask('GET', path, { key: 'none', headers: { authorization } })).status

    expect([
      await statusAt(open, path),
      await statusAt(open, '/v2/'),
      await statusAt(open, '/v2/other/app/manifests/v1'),
      await statusAt(closed, path),
    ]).toEqual([200, 401, 401, 401])
  })

  test('that are empty leave the decision to the next carrier', async () => {
    for (const [key, status] of [
      [testApiKey, 200],
      [unknownKey, 401],
    ] as const) {
      const headers = { authorization: 'Basic Og==', 'x-api-key': key }
      expect((await open.ask('GET', '/v2/', { key: 'none', headers })).status).toBe(status)
    }
  })
})

describe('the account of the open repositories', () => {
  test('is reported as disabled where an anonymous caller may pull, whether the repository exists or not', async () => {
    await open.ask('POST', `${api}/disable`)
    const paths = ['/v2/open/app/manifests/v1', '/v2/open/none/manifests/v1', '/v2/other/app/manifests/v1', '/v2/']
    const replies = []
    for (const path of paths) replies.push(await anonymous.ask('GET', path))
    await open.ask('POST', `${api}/enable`)

    expect(replies.map(({ status }) => status)).toEqual([403, 403, 401, 401])
    expect(replies[0]?.text).toBe(replies[1]?.text ?? '')
  })

  test('can be another than the first user has', async () => {
    const own = await startApi({
      BERTH_AUTH__ANONYMOUS_PULL: '*',
      BERTH_AUTH__ANONYMOUS_ACCOUNT: 'public',
    })
    await fillStock(own, 'open/app')
    const { status } = await own.ask('GET', '/v2/open/app/manifests/v1', { key: 'none' })
    await own.stop()

    expect(status).toBe(404)
  })
})
