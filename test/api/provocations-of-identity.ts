// How the refusals that are about callers, users and keys are provoked over the wire.
import type { Refusal } from '../../src/oci/errors.ts'
import { type ApiServer, api, identity } from '../support/api/api-server.ts'
import { json, logIn } from '../support/api/managed-users.ts'
import { testAdminPassword } from '../support/basics/test-project.ts'
import { openMetadataOf } from '../support/stores/test-stores.ts'
import { get, type Provocation, type Way } from './provocation.ts'

const name = 'refused/app'

async function crossSiteHeaders(server: ApiServer): Promise<Readonly<Record<string, string>>> {
  const cookie = `svc-auth=${await logIn(server, 'admin', testAdminPassword)}`
  return { cookie, 'sec-fetch-site': 'cross-site' }
}

/** A token that is for another repository than the one that is asked about. */
async function withOthersToken(server: ApiServer, path: string): Promise<Provocation> {
  const reply = await server.ask('GET', '/v2/_token?scope=repository:another/app:pull')
  return get(path, { key: 'none', headers: { authorization: `Bearer ${reply.json<{ token: string }>().token}` } })
}

/** The first bad key is only wrong; one more is too many. */
async function afterAFailure(server: ApiServer, path: string): Promise<Provocation> {
  const bad = { key: 'not-a-key-of-anybody' }
  await server.ask('GET', path, bad)
  return get(path, bad)
}

async function knownUser(server: ApiServer, user: string): Promise<string> {
  await server.ask('POST', `${identity}/users`, json({ name: user, roles: ['reader'] }))
  return `${identity}/users/${user}`
}

/** As a move to other stores does. */
async function forbidChanges(server: ApiServer): Promise<void> {
  const metadata = await openMetadataOf(server.dataDir)
  await metadata.transaction(({ marks }) => marks.set('read-only', '{}'))
  await metadata.close()
}

const post = (path: string, body: unknown): Provocation => ({ method: 'POST', path, ...json(body) })

export const whoIsCalling = {
  unauthenticated: {
    registry: (mount) => get(`${mount}/`, { key: 'none' }),
    service: () => get(`${api}/stats`, { key: 'none' }),
  },
  'credentials-invalid': {
    registry: (mount) => get(`${mount}/`, { key: 'not-a-key' }),
    service: () => get(`${api}/stats`, { key: 'not-a-key' }),
  },
  'cross-site-request': {
    registry: async (mount, server) => ({
      method: 'POST',
      path: `${mount}/${name}/blobs/uploads/`,
      key: 'none',
      headers: await crossSiteHeaders(server),
    }),
    service: async (_, server) => ({
      method: 'POST',
      path: `${api}/disable`,
      key: 'none',
      headers: await crossSiteHeaders(server),
    }),
  },
  denied: {
    settings: { BERTH_IDENTITY__ROLES: 'admin=push' },
    registry: (mount) => get(`${mount}/_catalog`),
    service: () => get(`${api}/stats`),
  },
  'scope-insufficient': {
    settings: { BERTH_AUTH__CHALLENGE: 'bearer' },
    registry: (mount, server) => withOthersToken(server, `${mount}/${name}/tags/list`),
  },
  'account-disabled': {
    settings: { BERTH_ACCOUNTS__AUTO_ENABLE: 'false' },
    registry: (mount) => get(`${mount}/_catalog`),
  },
  'account-suspended': {
    // A server of its own: it is left suspended.
    settings: {},
    service: async (_, server) => {
      const { account } = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>()
      const metadata = await openMetadataOf(server.dataDir)
      await metadata.accounts.suspend(account)
      await metadata.close()
      return { method: 'POST', path: `${api}/enable` }
    },
  },
  'read-only': {
    // A server of its own: it is left as it is.
    settings: {},
    registry: async (mount, server) => {
      await forbidChanges(server)
      return { method: 'POST', path: `${mount}/${name}/blobs/uploads/` }
    },
    service: async (_, server) => {
      await forbidChanges(server)
      return post(`${identity}/users`, { name: 'late' })
    },
  },
  'login-invalid': { service: () => post(`${identity}/token/auth`, { username: 'admin', password: 'wrong' }) },
  'too-many-failures': {
    settings: { BERTH_AUTH__FAILURE_BURST: '1' },
    registry: (mount, server) => afterAFailure(server, `${mount}/`),
    service: (_, server) => afterAFailure(server, `${api}/stats`),
  },
} satisfies Partial<Record<Refusal, Way>>

export const usersAndKeys = {
  'identity-invalid': { service: () => post(`${identity}/users`, { name: 'no name at all' }) },
  'user-unknown': { service: () => get(`${identity}/users/nobody`) },
  'user-exists': {
    service: async (_, server) => {
      await knownUser(server, 'known')
      return post(`${identity}/users`, { name: 'known' })
    },
  },
  'key-unknown': {
    service: async (_, server) => ({ method: 'DELETE', path: `${await knownUser(server, 'keyless')}/keys/none` }),
  },
  'key-exists': {
    service: async (_, server) => {
      const keys = `${await knownUser(server, 'keyed')}/keys`
      await server.ask('POST', keys, json({ name: 'laptop' }))
      return post(keys, { name: 'laptop' })
    },
  },
  'too-many-users': {
    settings: { BERTH_LIMITS__USERS_PER_ACCOUNT: '1' },
    service: () => post(`${identity}/users`, { name: 'second' }),
  },
  'last-operator': {
    service: () => ({ method: 'PATCH', path: `${identity}/users/admin`, ...json({ roles: [] }) }),
  },
  'too-many-keys': {
    settings: { BERTH_LIMITS__KEYS_PER_USER: '1' },
    service: async (_, server) => {
      const keys = `${await knownUser(server, 'collector')}/keys`
      await server.ask('POST', keys, json({ name: 'one' }))
      return post(keys, { name: 'two' })
    },
  },
} satisfies Partial<Record<Refusal, Way>>
