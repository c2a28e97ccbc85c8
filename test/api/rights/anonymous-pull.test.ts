// Anonymous pull, by pattern. An anonymous caller may read the open repositories and learns nothing about others.
import { afterAll, describe, expect, test } from 'bun:test'
import { pushBlob } from '../../support/api/api-images.ts'
import { api, mounts, type Reply, startApi } from '../../support/api/api-server.ts'
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
const isOpen = ({ route }: Operation) => route.access === 'repository' && route.right === 'pull'
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

  test.each(
    mounts.flatMap((mount) => [
      ['GET', `${mount}/nothing`],
      ['GET', `${mount}/open/app/nothing`],
      ['GET', `${mount}/open/app/manifests`],
      ['GET', `${mount}/_nothing`],
      ['POST', `${mount}/_catalog`],
      ['PUT', `${mount}/open/app/tags/list`],
      ['DELETE', `${mount}/open/app/tags/list`],
      ['GET', `${mount}/NOT/valid/tags/list`],
      ['GET', `${mount}/open/-/tags/list`],
      ['GET', `${mount}`],
      ['GET', `${mount}/`],
      ['GET', `${mount}/_catalog`],
      ['GET', `${mount}/_catalog?n=many`],
    ]),
  )('is asked for credentials at %s %s', async (method = '', path = '') => {
    expectAsked(await anonymous.ask(method, path), { method, mount: '/v2' })
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

  test.each([
    ['an unknown key', { 'x-api-key': 'berth_nobodys_key_0123456789' }],
    ['an unknown key as Basic', { authorization: basic('apikey', 'berth_nobodys_key_0123456789') }],
    ['a token that is none', { authorization: 'Bearer nonsense' }],
    ['a user with a password', { authorization: basic('admin', 'whatever it is') }],
    ['a user with an empty password', { authorization: basic('admin', '') }],
    ['an empty Bearer', { authorization: 'Bearer ' }],
    ['an empty key', { 'x-api-key': '' }],
    ['another scheme', { authorization: 'Negotiate abcd' }],
    ['an empty cookie', { cookie: 'svc-auth=' }],
    ['an unknown cookie', { cookie: 'svc-auth=nonsense' }],
  ])('that are bad are refused and do not pass for none: %s', async (_, headers) => {
    const reply = await open.ask('GET', path, { key: 'none', headers })

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, challenge])
  })

  test.each(['?apiKey=', '?apiKey=berth_nobodys_key_0123456789'])('that are bad are refused: %s', async (query) => {
    expect((await anonymous.ask('GET', path + query)).status).toBe(401)
  })

  test.each(['Basic Og==', 'basic Og==', 'BASIC Og=='])('that are empty count as none: %s', async (authorization) => {
    const headers = { authorization }
    const [pull, check, elsewhere] = [
      await open.ask('GET', path, { key: 'none', headers }),
      await open.ask('GET', '/v2/', { key: 'none', headers }),
      await open.ask('GET', '/v2/other/app/manifests/v1', { key: 'none', headers }),
    ]

    expect([pull.status, check.status, elsewhere.status]).toEqual([200, 401, 401])
  })

  test('that are empty leave the word to the next carrier', async () => {
    const ask = (key: string) =>
      open.ask('GET', '/v2/', { key: 'none', headers: { authorization: 'Basic Og==', 'x-api-key': key } })

    expect([(await ask(testApiKey)).status, (await ask('berth_nobodys_key_0123456789')).status]).toEqual([200, 401])
  })

  test('that are empty count as none also where anonymous callers may not pull', async () => {
    const reply = await closed.ask('GET', path, { key: 'none', headers: { authorization: 'Basic Og==' } })

    expectAsked(reply, { method: 'GET', mount: '/v2' })
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
