// Commands on the data folder of a running server. It caches no credentials, so changes are visible at once.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { ask, pushImage } from '../../support/clients/registry-client.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'
import { type BerthProcess, startBerth } from '../../support/server/berth-process.ts'
import { toArguments } from './workplace.ts'

const newFolder = useTemporaryFolders('command-beside')
const folder = newFolder()
const dataDir = newFolder()
const identity = '/api/2021-02-21'

let server: BerthProcess
let home: string

beforeAll(async () => {
  server = await startBerth({ dataDir, settings: { BERTH_IDENTITY__CACHE: '0s' } })
  home = ((await (await ask(server, 'GET', `${identity}/me`)).json()) as { account: string }).account
})
afterAll(() => server.stop())

async function run(words: string): Promise<string> {
  const { exitCode, stdout, stderr } = await runBerthHere(toArguments([words]), { BERTH_DATA_DIR: dataDir }, folder)
  if (exitCode !== 0) throw new Error(`berth ${words}: ${exitCode} ${stderr}`)
  return stdout.trim()
}

const readJson = async <T>(words: string): Promise<T> => JSON.parse(await run(`${words} --json`))

async function statusOf(method: string, path: string, authorization: string): Promise<number> {
  const answer = await fetch(server.url + path, { method, headers: { authorization } })
  await answer.arrayBuffer()
  return answer.status
}

const withKey = (key: string) => `Basic ${btoa(`apikey:${key}`)}`
const me = (authorization: string) => statusOf('GET', `${identity}/me`, authorization)
const startUpload = (key: string, repository: string) =>
  statusOf('POST', `/v2/${repository}/blobs/uploads/`, withKey(key))

test('a key works from its creation with its limits, until it is revoked or its user is disabled', async () => {
  await run('user add ann --role writer')
  const wide = await run('key create ann --name wide')
  const narrow = await run('key create ann --name narrow --right push --repository team/*')
  expect([await startUpload(wide, 'other/app'), await startUpload(narrow, 'team/app')]).toEqual([202, 202])
  expect([await startUpload(narrow, 'other/app'), await statusOf('GET', '/v2/_catalog', withKey(narrow))]).toEqual([
    403, 403,
  ])

  await run('key revoke ann wide')
  expect([await me(withKey(wide)), await me(withKey(narrow))]).toEqual([401, 200])
  await run('user disable ann')
  expect(await me(withKey(narrow))).toBe(401)
})

test('an account is disabled and enabled from the next request on, and keeps its content', async () => {
  for (const tag of ['v1', 'v2']) await pushImage(server, 'team/app', tag, [new TextEncoder().encode('a layer')])
  const shown = await readJson<{ users: string[] }>(`account show ${home}`)
  expect(shown).toMatchObject({ name: home, state: 'enabled', imageCount: 1, manifests: 2, tags: 2, blobs: 3 })
  expect(shown.users).toContain('admin')
  const pull = async () => (await ask(server, 'GET', '/v2/team/app/manifests/v1')).status

  expect(await pull()).toBe(200)
  await run(`account disable ${home}`)
  expect([await pull(), (await ask(server, 'GET', '/v2/')).status]).toEqual([403, 200])
  expect(await readJson<object>(`account show ${home}`)).toEqual({ ...shown, state: 'disabled' })
  expect((await ask(server, 'POST', '/api/2023-12-28/enable')).status).toBe(200)
  expect(await readJson<object>(`account show ${home}`)).toEqual(shown)
  await run(`account disable ${home}`)
  await run(`account enable ${home}`)
  expect(await pull()).toBe(200)
})

test('a tag shows its history and is restored, and the manifest that lost it is listed', async () => {
  const digests: string[] = []
  for (const layer of ['good', 'bad']) {
    await pushImage(server, 'moved/app', 'latest', [new TextEncoder().encode(layer)])
    digests.push(await run('tag show moved/app latest'))
  }
  const [good, bad] = digests
  expect((await readJson<{ digest: string }[]>('image untagged moved/app')).map(({ digest }) => digest)).toEqual([
    good ?? '',
  ])
  expect(await run('image untagged moved/app')).toContain('never')

  expect(await run('tag restore moved/app latest')).toBe(good ?? '')
  expect(await run(`tag restore moved/app latest --digest ${bad}`)).toBe(bad ?? '')
  const moves = await readJson<{ movedBy: string; cause: string }[]>('tag history moved/app latest')
  expect(moves.map(({ movedBy, cause }) => `${movedBy} ${cause}`)).toEqual([
    'operator restore',
    'operator restore',
    'admin push',
    'admin push',
  ])
  expect(await run(`tag history moved/app latest --account ${home}`)).toContain('operator')
  expect(await run('tag show moved/app latest --at 2000-01-01T00:00:00Z').catch(String)).toContain(
    'the history of the tag',
  )
  expect(await run('tag show moved/none latest').catch(String)).toContain('repository name not known')
})

test('an unfinished upload is listed, cancelled, and removed by gc at the given age', async () => {
  for (const repository of ['idle/one', 'idle/two']) expect(await startUpload(server.apiKey, repository)).toBe(202)
  const list = (repository: string) => readJson<{ id: string }[]>(`upload list --repository ${repository}`)
  const [one] = await list('idle/one')
  expect(one).toMatchObject({ account: home, repository: 'idle/one', sizeBytes: 0, isWritten: false })
  expect(await run(`upload list --account ${home}`)).toContain('idle/two')

  await run(`upload cancel ${one?.id}`)
  expect((await ask(server, 'GET', `/v2/idle/one/blobs/uploads/${one?.id}`)).status).toBe(404)
  expect(await run('gc --dry-run')).toContain('remove 0 unfinished uploads')
  expect(await run('gc --dry-run --upload-idle 0s')).not.toContain('remove 0 unfinished uploads')
  expect(await list('idle/two')).toHaveLength(1)
  await run('gc --upload-idle 0s')
  expect(await list('idle/two')).toEqual([])
})
