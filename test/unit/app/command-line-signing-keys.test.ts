import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { testAdminPassword } from '../../support/basics/test-project.ts'
import { until } from '../../support/clocks/until.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'
import { type BerthProcess, startBerth } from '../../support/server/berth-process.ts'
import { layEmptyData } from '../../support/stores/empty-data.ts'

const newFolder = useTemporaryFolders('command-signing-keys')
const identity = '/api/2021-02-21'

interface ShownKey {
  readonly kid: string
  readonly createdAt: string
  readonly state: string
}

async function newWorkplace(dataDir: string) {
  const folder = newFolder()
  await layEmptyData(dataDir)
  const run = (...args: string[]) => runBerthHere(['signing-key', ...args], { BERTH_DATA_DIR: dataDir }, folder)
  const keys = async () => JSON.parse((await run('list', '--json')).stdout) as ShownKey[]
  const states = async () => (await keys()).map(({ state }) => state)
  return { run, keys, states }
}

describe('berth signing-key', () => {
  test('rotate makes the next key, which waits for its turn', async () => {
    const { run, keys, states } = await newWorkplace(newFolder())
    expect(await states()).toEqual(['signs'])
    const { exitCode, stdout, stderr } = await run('rotate')
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^\S+ signs from \d{4}-\d\d-\d\d \d\d:\d\dZ on\n$/)
    expect(await states()).toEqual(['signs', 'next'])
    expect(stdout).toStartWith((await keys())[1]?.kid ?? 'none')

    const [head, first, second] = (await run('list')).stdout.split('\n')
    expect(head).toMatch(/^KEY +CREATED +STATE$/)
    expect(first).toMatch(/Z {2}signs$/)
    expect(second).toMatch(/Z {2}signs from .*Z on$/)
  })

  test('rotate --now leaves one new key', async () => {
    const { run, keys, states } = await newWorkplace(newFolder())
    await run('rotate')
    const before = (await keys()).map(({ kid }) => kid)
    const { exitCode, stdout } = await run('rotate', '--now')
    expect(exitCode).toBe(0)
    expect(await states()).toEqual(['signs'])
    const [now] = await keys()
    expect(before).not.toContain(now?.kid)
    expect(stdout).toStartWith(`${now?.kid} signs now`)
  })

  test('works with another identity service too, whose tokens are none of ours', async () => {
    const dataDir = newFolder()
    await layEmptyData(dataDir)
    const settings = { BERTH_DATA_DIR: dataDir, BERTH_AUTH__URL: 'http://127.0.0.1:9' }
    expect((await runBerthHere(['signing-key', 'rotate'], settings, newFolder())).exitCode).toBe(0)
  })
})

const servedDataDir = newFolder()
const { run, keys } = await newWorkplace(servedDataDir)

describe('beside a running server', () => {
  let server: BerthProcess
  const start = async () => {
    server = await startBerth({ dataDir: servedDataDir, settings: { BERTH_IDENTITY__CACHE: '0s' } })
  }
  beforeAll(start)
  afterAll(() => server.stop())

  async function logIn(): Promise<string> {
    const body = JSON.stringify({ username: 'admin', password: testAdminPassword })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${server.url}${identity}/token/auth`, { method: 'POST', headers, body })
    return ((await answer.json()) as { access_token: string }).access_token
  }

  async function statusWith(token: string): Promise<number> {
    const answer = await fetch(`${server.url}${identity}/me`, { headers: { authorization: `Bearer ${token}` } })
    await answer.arrayBuffer()
    return answer.status
  }

  async function published(): Promise<readonly string[]> {
    const answer = await fetch(`${server.url}${identity}/jwks.json`)
    return ((await answer.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid)
  }

  test('a next key is published, and tokens go on', async () => {
    const token = await logIn()
    await run('rotate')
    const kids = (await keys()).map(({ kid }) => kid)
    expect(kids).toHaveLength(2)
    await until('the server publishes the next key', async () => (await published()).length === 2)
    expect(await published()).toEqual(kids)
    expect(await statusWith(token)).toBe(200)
  })
})
