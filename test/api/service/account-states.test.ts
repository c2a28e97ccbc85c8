// What "enabled" means, decisions.md 4: never enabled -> enabled <-> disabled. Made from the route table.
import { afterAll, describe, expect, test } from 'bun:test'
import { pushApiImage, startUpload } from '../../support/api/api-images.ts'
import { type ApiServer, api, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import {
  askFor,
  emptyStock,
  exampleOf,
  fillStock,
  type Operation,
  operations,
} from '../../support/api/route-examples.ts'
import { askedBy } from '../../support/api/wired-registry.ts'
import { auditStores, countRows } from '../../support/stores/store-audit.ts'
import { openMetadataOf } from '../../support/stores/test-stores.ts'

const refused = {
  errors: [{ code: 'DENIED', message: 'the registry is disabled for this account', detail: {} }],
  msg: 'the registry is disabled for this account',
}
/** Outside of the registry interface, an error has the form of spec.md alone. */
const refusalBy = ({ method, mount }: Operation) =>
  method === 'HEAD' ? '' : JSON.stringify(mount === '' ? { msg: refused.msg } : refused)
const servers = {
  on: await startApi(),
  off: await startApi({ BERTH_ACCOUNTS__AUTO_ENABLE: 'false' }),
}
afterAll(() => Promise.all([servers.on.stop(), servers.off.stop()]))

const autoEnable = ['on', 'off'] as const
const named = operations.map((operation) => [operation.title, operation] as const)
const needsOpenAccount = ({ route: { access } }: Operation) => access === 'repository' || access === 'enabled account'
let made = 0

/** A user of a new account. */
async function joinNewAccount(server: ApiServer) {
  made += 1
  const [account, user] = [`account-${made}`, `states-${made}`]
  const person = askedBy(server, await addPerson(server, { name: user, roles: ['admin'], account }))
  return { person, account, user }
}

const rowsOf = (server: ApiServer, account: string) => countRows(server.dataDir, 'accounts', `name = '${account}'`)
const isEnabled = (server: ApiServer, account: string) =>
  countRows(server.dataDir, 'accounts', `name = '${account}' AND state = 'enabled'`) === 1

test('the tables have all routes in them, both mounts and HEAD', () => {
  expect(operations.length).toBeGreaterThan(60)
  expect(operations.filter(needsOpenAccount).length).toBeGreaterThan(30)
})

describe.each(autoEnable)('with accounts.auto_enable %s', (setting) => {
  const server = servers[setting]

  // ../rights/rights-table.test.ts shows that an enabled one is served.
  test.each(named)('a disabled account is refused all of the registry, and nothing else: %s', async (_, operation) => {
    const { person, user } = await joinNewAccount(server)
    await person.ask('POST', `${api}/enable`)
    const stock = await fillStock(person, 'team/app', { user, apiKeyName: 'test' })
    await person.ask('POST', `${api}/disable`)
    const reply = await askFor(person, operation, stock)

    expect(reply.status).toBe(needsOpenAccount(operation) ? 403 : exampleOf(operation.route).status)
    if (needsOpenAccount(operation)) expect(reply.text).toBe(refusalBy(operation))
  })
})

describe('an account that was never enabled', () => {
  test.each(named)('is refused with accounts.auto_enable off, and stays unknown: %s', async (_, operation) => {
    const { person, account, user } = await joinNewAccount(servers.off)
    const reply = await askFor(person, operation, { ...emptyStock('team/app', user), apiKeyName: 'test' })

    expect(reply.status).toBe(needsOpenAccount(operation) ? 403 : exampleOf(operation.route).status)
    if (needsOpenAccount(operation)) expect(reply.text).toBe(refusalBy(operation))
    const isSwitch = ['enableService', 'disableService'].includes(operation.route.operationId)
    expect(rowsOf(servers.off, account)).toBe(isSwitch ? 1 : 0)
  })

  test.each(named.filter(([, operation]) => needsOpenAccount(operation)))(
    'is enabled with accounts.auto_enable on by its first use, whichever: %s',
    async (_, operation) => {
      const { person, account } = await joinNewAccount(servers.on)
      const reply = await askFor(person, operation, emptyStock('team/app'))

      expect([200, 202, 204, 400, 404]).toContain(reply.status)
      expect(isEnabled(servers.on, account)).toBe(true)
    },
  )

  test('is not enabled by checkAuthentication, by reading statistics or by a caller without rights', async () => {
    const { person, account } = await joinNewAccount(servers.on)
    const withoutRights = askedBy(
      servers.on,
      await addPerson(servers.on, { name: 'states-none', roles: ['x'], account }),
    )

    const replies = [
      await person.ask('GET', '/v2/'),
      await person.ask('GET', `${api}/stats`),
      await withoutRights.ask('GET', '/v2/_catalog'),
    ]

    expect(replies.map(({ status }) => status)).toEqual([200, 200, 403])
    expect(rowsOf(servers.on, account)).toBe(0)
  })
})

test('a suspended account is refused like a disabled one, and its users cannot enable it', async () => {
  const { person, account } = await joinNewAccount(servers.on)
  const look = async () => (await person.ask('GET', '/v2/_catalog')).text
  const statusOf = async (verb: string) => (await person.ask('POST', `${api}/${verb}`)).status
  expect(JSON.parse(await look())).toEqual({ repositories: [] })
  const metadata = await openMetadataOf(servers.on.dataDir)
  await metadata.accounts.suspend(account)

  expect(await look()).toBe(JSON.stringify(refused))
  for (const [verb, status] of [
    ['enable', 403],
    ['disable', 200],
    ['enable', 403],
  ] as const) {
    expect([verb, await statusOf(verb), await look()]).toEqual([verb, status, JSON.stringify(refused)])
  }
  expect((await person.ask('GET', `${api}/stats`)).status).toBe(200)

  await metadata.accounts.resume(account)
  await metadata.close()
  expect(await look()).toBe(JSON.stringify(refused))
  expect([await statusOf('enable'), JSON.parse(await look())]).toEqual([200, { repositories: [] }])
})

test('an account is reported as disabled only to callers with the right to the operation', async () => {
  const { person, account } = await joinNewAccount(servers.on)
  const reader = askedBy(servers.on, await addPerson(servers.on, { name: 'states-reader', roles: ['reader'], account }))
  await person.ask('POST', `${api}/disable`)
  const [pull, push] = [
    await reader.ask('GET', '/v2/app/manifests/v1'),
    await reader.ask('POST', '/v2/app/blobs/uploads/'),
  ]

  expect([pull.json(), push.json()]).toMatchObject([refused, { msg: 'requested access to the resource is denied' }])
})

test('nothing is lost by disabling and enabling: manifests, tags, blobs, referrers and open uploads', async () => {
  const registry = servers.on
  const image = await pushApiImage(registry, 'kept/app', 'v1', { layers: ['a layer'] })
  const signature = await pushApiImage(registry, 'kept/app', 'signature', {
    subject: image.descriptor,
    artifactType: 'application/x.signature',
  })
  const upload = await startUpload(registry, 'kept/app')
  await registry.ask('PATCH', upload, { body: 'half of it' })
  const paths = [
    '/v2/_catalog',
    '/v2/kept/app/tags/list',
    '/v2/kept/app/manifests/v1',
    `/v2/kept/app/manifests/${signature.digest}`,
    `/v2/kept/app/referrers/${image.digest}`,
    `/v2/kept/app/blobs/${(JSON.parse(image.bytes) as { layers: { digest: string }[] }).layers[0]?.digest}`,
    upload,
  ]
  const look = () => Promise.all(paths.map((path) => registry.ask('GET', path)))
  const tell = (replies: Awaited<ReturnType<typeof look>>) =>
    replies.map(({ status, text, headers }) => [status, text, headers.get('etag'), headers.get('range')])
  const before = tell(await look())

  await registry.ask('POST', `${api}/disable`)
  const between = tell(await look())
  await registry.ask('POST', `${api}/enable`)

  expect(before.map(([status]) => status)).toEqual([200, 200, 200, 200, 200, 200, 204])
  expect(between.map(([status]) => status)).toEqual(paths.map(() => 403))
  expect(tell(await look())).toEqual(before)
  expect(await auditStores(registry.dataDir)).toEqual([])
})
