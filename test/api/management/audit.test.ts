// The audit log over HTTP: changes, logins and refusals of the account of the caller.
import { afterAll, describe, expect, test } from 'bun:test'
import { pushApiImage } from '../../support/api/api-images.ts'
import { api, identity, startApi } from '../../support/api/api-server.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'

const server = await startApi({ BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1' })
afterAll(() => server.stop())

interface Entry {
  readonly actor: string | null
  readonly key: string | null
  readonly address: string | null
  readonly action: string
  readonly target: string | null
  readonly outcome: string
  readonly reason: string | null
  readonly count: number
}
const from = (address: string) => ({ 'x-forwarded-for': address })
const listOf = async (query = '', key?: string) => {
  const reply = await server.ask('GET', `${api}/audit${query}`, key === undefined ? {} : { key })
  expect(reply.status).toBe(200)
  return reply.json<{ entries: readonly Entry[] }>().entries
}
const post = (path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
  server.ask('POST', path, { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } })

async function createKey(user: string, limits: object = {}): Promise<string> {
  const made = await post(`${identity}/users/${user}/keys`, { name: `key-of-${user}`, ...limits })
  return made.json<{ key: string }>().key
}

/** Logins and refusals are written in the background. */
async function untilListed(query: string): Promise<readonly Entry[]> {
  for (;;) {
    const entries = await listOf(query)
    if (entries.length > 0) return entries
    await Bun.sleep(100)
  }
}

describe('the audit log', () => {
  test('has a change when its answer arrives, with the caller, the address, the key and what was created', async () => {
    await post(
      `${identity}/users`,
      { name: 'ann', roles: ['reader'], password: 'a long passphrase' },
      from('192.0.2.9'),
    )
    await createKey('ann')
    await server.ask('POST', `${api}/disable`)
    await server.ask('POST', `${api}/enable`)

    const done = { actor: 'admin', outcome: 'done', reason: null, count: 1 }
    const entries = await listOf()
    expect(entries.slice(0, 4)).toMatchObject([
      { ...done, action: 'enableService', target: `${api}/enable` },
      { ...done, action: 'disableService', target: `${api}/disable` },
      { ...done, action: 'postApiKey', target: `${identity}/users/ann/keys/key-of-ann`, address: '127.0.0.1' },
      { ...done, action: 'postUser', target: `${identity}/users/ann`, address: '192.0.2.9' },
    ])
    expect(entries[0]?.key).toEqual(expect.any(String))
    expect(JSON.stringify(entries)).not.toContain('a long passphrase')
  })

  test('has pushes, moved tags and deletions with the address of the client', async () => {
    const { digest } = await pushApiImage(server, 'team/app', 'latest')
    await server.ask('DELETE', '/v2/team/app/manifests/latest', { headers: from('192.0.2.10') })

    expect(await listOf('?repository=team/app&n=3')).toMatchObject([
      { action: 'tag.deleted', target: 'team/app:latest', actor: 'admin', address: '192.0.2.10' },
      { action: 'tag.created', target: 'team/app:latest', address: '127.0.0.1' },
      { action: 'manifest.pushed', target: `team/app@${digest}` },
    ])
  })

  test('has logins and failed logins, of a user by name and of others without the name that they gave', async () => {
    const login = { username: 'ann', password: 'a long passphrase' }
    expect((await post(`${identity}/token/auth`, login)).status).toBe(200)
    for (const username of ['ann', 'my-secret-in-the-wrong-field']) {
      const wrong = await post(`${identity}/token/auth`, { username, password: 'wrong' }, from('192.0.2.11'))
      expect(wrong.status).toBe(401)
    }

    const failed = await untilListed('?action=login&outcome=refused')
    expect(failed).toMatchObject([{ actor: 'ann', reason: 'login-invalid', address: '192.0.2.11', count: 1 }])
    expect(await untilListed('?action=login&outcome=done')).toMatchObject([{ actor: 'ann', target: null }])
  })

  test('has what a caller had no right to, and shows itself only to callers with the right operate', async () => {
    await post(`${identity}/users`, { name: 'ben', roles: ['reader'] })
    const key = await createKey('ben')
    expect((await server.ask('GET', `${api}/audit`, { key })).status).toBe(403)
    expect((await server.ask('DELETE', '/v2/team/app/manifests/latest', { key })).status).toBe(403)

    await untilListed('?outcome=refused&action=deleteManifest')
    expect(await listOf('?outcome=refused&actor=ben')).toMatchObject([
      { action: 'deleteManifest', reason: 'denied', key: 'key-of-ben' },
      { action: 'getAudit', reason: 'denied', target: `${api}/audit` },
    ])
  })

  test('is of one account; commands print all, and have entries of their own', async () => {
    const { account } = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>()
    const berth = (...args: string[]) => runBerthHere(args, { BERTH_DATA_DIR: server.dataDir }, server.dataDir)
    for (const verb of ['suspend', 'resume'])
      expect(await berth('account', verb, account)).toMatchObject({ stderr: '' })
    const { stdout } = await berth('audit', '--output', 'jsonl')
    const lines = stdout.trim().split('\n')
    const entries = lines.map((line) => JSON.parse(line) as Entry & { account?: string })
    expect(entries[0]).toMatchObject({ action: 'berth account resume', actor: 'operator', target: account })
    expect(entries.some((entry) => entry.account === account && entry.action === 'tag.created')).toBe(true)
    expect(entries.some((entry) => entry.account === undefined && entry.reason === 'login-invalid')).toBe(true)
    expect((await listOf('?n=1000')).filter(({ action }) => action.startsWith('berth'))).toEqual([])
  })

  test('refuses a time that is none, and matches nothing for an outcome that does not exist', async () => {
    expect((await server.ask('GET', `${api}/audit?since=yesterday`)).status).toBe(400)
    expect(await listOf('?outcome=perhaps')).toEqual([])
    expect(await listOf('?since=2100-01-01T00:00:00Z')).toEqual([])
    expect(await listOf('?until=2000-01-01T00:00:00Z')).toEqual([])
  })
})
