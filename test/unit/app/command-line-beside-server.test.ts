// Commands on the data folder of a server that runs. It remembers no caller, so changes are visible at once.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { pushImage } from '../../support/clients/registry-client.ts'
import { runBerthHere, runBerthHereWith } from '../../support/server/berth-here.ts'
import { type BerthProcess, startBerth } from '../../support/server/berth-process.ts'

const newFolder = useTemporaryFolders('command-beside')
const folder = newFolder()
const dataDir = newFolder()
const identity = '/api/2021-02-21'
const service = '/api/2023-12-28'

let server: BerthProcess
let home: string

async function start(): Promise<void> {
  server = await startBerth({ dataDir, settings: { BERTH_IDENTITY__CACHE: '0s' } })
}

beforeAll(async () => {
  await start()
  home = (await bodyOf<{ account: string }>('GET', `${identity}/me`, server.apiKey)).account
})
afterAll(() => server.stop())

async function run(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runBerthHere(args, { BERTH_DATA_DIR: dataDir }, folder)
  if (exitCode !== 0) throw new Error(`berth ${args.join(' ')}: ${exitCode} ${stderr}`)
  return stdout.trim()
}

async function setPassword(name: string, password: string): Promise<void> {
  const args = ['user', 'passwd', name, '--password-stdin']
  expect((await runBerthHereWith(password, args, { BERTH_DATA_DIR: dataDir }, folder)).exitCode).toBe(0)
}

function ask(method: string, path: string, key: string): Promise<Response> {
  const authorization = `Basic ${btoa(`apikey:${key}`)}`
  return fetch(server.url + path, { method, headers: { authorization } })
}

async function statusOf(method: string, path: string, key: string): Promise<number> {
  const answer = await ask(method, path, key)
  await answer.arrayBuffer()
  return answer.status
}

async function bodyOf<T>(method: string, path: string, key: string): Promise<T> {
  return (await (await ask(method, path, key)).json()) as T
}

const me = (key: string) => statusOf('GET', `${identity}/me`, key)
const startUpload = (key: string, repository: string) => statusOf('POST', `/v2/${repository}/blobs/uploads/`, key)

async function logIn(username: string, password: string): Promise<string | number> {
  const body = JSON.stringify({ username, password })
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${server.url}${identity}/token/auth`, { method: 'POST', headers, body })
  const token = ((await answer.json()) as { access_token?: string }).access_token
  return token ?? answer.status
}

async function withToken(token: string | number): Promise<number> {
  const answer = await fetch(`${server.url}${identity}/me`, { headers: { authorization: `Bearer ${token}` } })
  await answer.arrayBuffer()
  return answer.status
}

describe('a key that the command makes', () => {
  test('lets its user in at once, in the account of the first user', async () => {
    await run('user', 'add', 'ann', '--role', 'writer')
    const key = await run('key', 'create', 'ann', '--name', 'ci')
    const known = await bodyOf<Record<string, unknown>>('GET', `${identity}/me`, key)
    expect(known).toMatchObject({ account: home, roles: ['writer'] })
    expect(await statusOf('GET', '/v2/', key)).toBe(200)
    expect(await startUpload(key, 'team/app')).toBe(202)
  })

  test('may do what its limits leave, where they leave it', async () => {
    await run('user', 'add', 'ben', '--role', 'writer')
    const narrow = await run('key', 'create', 'ben', '--name', 'narrow', '--repository', 'team/*')
    expect([await startUpload(narrow, 'team/app'), await startUpload(narrow, 'other/app')]).toEqual([202, 403])
    const reader = await run('key', 'create', 'ben', '--name', 'reader', '--right', 'pull')
    expect([await statusOf('GET', '/v2/_catalog', reader), await startUpload(reader, 'team/app')]).toEqual([200, 403])
  })

  test('is good for nothing from its revocation on, and others stay', async () => {
    await run('user', 'add', 'cat', '--role', 'reader')
    const [gone, other] = [
      await run('key', 'create', 'cat', '--name', 'a'),
      await run('key', 'create', 'cat', '--name', 'b'),
    ]
    expect([await me(gone), await me(other)]).toEqual([200, 200])
    await run('key', 'revoke', 'cat', 'a')
    expect([await me(gone), await me(other)]).toEqual([401, 200])
  })
})

describe('a password that the command sets', () => {
  test('logs in, and ends the tokens of the one before', async () => {
    await run('user', 'add', 'gus', '--role', 'reader')
    expect(await logIn('gus', 'the first password')).toBe(401)
    await setPassword('gus', 'the first password')
    const token = await logIn('gus', 'the first password')
    expect(await withToken(token)).toBe(200)

    await setPassword('gus', 'the second password')
    expect(await withToken(token)).toBe(401)
    expect(await logIn('gus', 'the first password')).toBe(401)
    expect(await withToken(await logIn('gus', 'the second password'))).toBe(200)
  })

  test('is not enough while its user is disabled, and old tokens stay ended after that', async () => {
    await run('user', 'add', 'ivy', '--role', 'reader')
    await setPassword('ivy', 'the first password')
    const token = await logIn('ivy', 'the first password')
    await run('user', 'disable', 'ivy')
    expect([await withToken(token), await logIn('ivy', 'the first password')]).toEqual([401, 401])
    await run('user', 'enable', 'ivy')
    expect(await withToken(token)).toBe(401)
    expect(await withToken(await logIn('ivy', 'the first password'))).toBe(200)
  })
})

describe('an account that the command switches', () => {
  test('is disabled and enabled from the next request on, and keeps its content', async () => {
    await pushImage(server, 'team/app', 'v1', [new TextEncoder().encode('a layer')])
    await pushImage(server, 'team/app', 'v2', [new TextEncoder().encode('a layer')])
    const shown = JSON.parse(await run('account', 'show', home, '--json'))
    expect(shown).toMatchObject({ name: home, state: 'enabled', imageCount: 1, manifests: 2, tags: 2, blobs: 3 })
    expect(shown.users).toContain('admin')
    const pull = () => statusOf('GET', '/v2/team/app/manifests/v1', server.apiKey)

    expect(await pull()).toBe(200)
    await run('account', 'disable', home)
    expect([await pull(), await statusOf('GET', '/v2/', server.apiKey)]).toEqual([403, 200])
    expect(JSON.parse(await run('account', 'show', home, '--json'))).toEqual({ ...shown, state: 'disabled' })
    expect(await statusOf('POST', `${service}/enable`, server.apiKey)).toBe(200)
    expect(JSON.parse(await run('account', 'show', home, '--json'))).toEqual(shown)
    await run('account', 'disable', home)
    await run('account', 'enable', home)
    expect(await pull()).toBe(200)
  })
})

describe('an unfinished upload', () => {
  test('is listed, cancelled, and removed by gc at the age that is given', async () => {
    for (const repository of ['idle/one', 'idle/two']) expect(await startUpload(server.apiKey, repository)).toBe(202)
    const list = async (repository: string): Promise<{ id: string }[]> =>
      JSON.parse(await run('upload', 'list', '--repository', repository, '--json'))
    const [one] = await list('idle/one')
    expect(one).toMatchObject({ account: home, repository: 'idle/one', sizeBytes: 0, isWritten: false })
    expect(await run('upload', 'list', '--account', home)).toContain('idle/two')

    await run('upload', 'cancel', one?.id ?? '')
    expect(await statusOf('GET', `/v2/idle/one/blobs/uploads/${one?.id}`, server.apiKey)).toBe(404)
    expect(await run('gc', '--dry-run')).toContain('remove 0 unfinished uploads')
    expect(await run('gc', '--dry-run', '--upload-idle', '0s')).not.toContain('remove 0 unfinished uploads')
    expect(await list('idle/two')).toHaveLength(1)
    await run('gc', '--upload-idle', '0s')
    expect(await list('idle/two')).toEqual([])
  })

  test('of a suspended account is kept by gc, and can be listed and cancelled', async () => {
    await run('user', 'add', 'mia', '--role', 'writer', '--account', 'shut')
    const key = await run('key', 'create', 'mia', '--name', 'a')
    expect(await startUpload(key, 'app')).toBe(202)
    await run('account', 'suspend', 'shut')
    const list = async (): Promise<{ id: string }[]> =>
      JSON.parse(await run('upload', 'list', '--account', 'shut', '--json'))

    await run('gc', '--upload-idle', '0s')
    const [kept] = await list()
    expect(kept).toBeDefined()

    await run('upload', 'cancel', kept?.id ?? '')
    expect(await list()).toEqual([])
  })
})

describe('what a server leaves behind', () => {
  test('tells when a key was last used', async () => {
    await run('user', 'add', 'kai', '--role', 'reader')
    const key = await run('key', 'create', 'kai', '--name', 'used')
    await run('key', 'create', 'kai', '--name', 'unused')
    expect(await me(key)).toBe(200)
    await server.stop()
    const keys: { name: string; lastUsedAt: string | null }[] = JSON.parse(await run('key', 'list', 'kai', '--json'))
    await start()
    expect(keys.map(({ name, lastUsedAt }) => [name, lastUsedAt === null])).toEqual([
      ['unused', true],
      ['used', false],
    ])
  })
})
