import { expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { openWorkplace } from './workplace.ts'

const newFolder = useTemporaryFolders('command-signing-keys')

interface ShownKey {
  readonly kid: string
  readonly state: string
}

async function openKeys(environment: Readonly<Record<string, string>> = {}) {
  const { run, readJson } = await openWorkplace(newFolder(), environment)
  const keys = () => readJson<ShownKey[]>('signing-key list')
  return { run, keys, states: async () => (await keys()).map(({ state }) => state) }
}

test('berth signing-key rotate creates the next key, and rotate --now leaves one new key', async () => {
  const { run, keys, states } = await openKeys()
  expect(await states()).toEqual(['signs'])
  const { exitCode, stdout, stderr } = await run('signing-key rotate')
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^\S+ signs from \d{4}-\d\d-\d\d \d\d:\d\dZ on\n$/)
  expect(await states()).toEqual(['signs', 'next'])
  const old = (await keys()).map(({ kid }) => kid)
  expect(stdout).toStartWith(old[1] ?? 'none')

  const [head, first, second] = (await run('signing-key list')).stdout.split('\n')
  expect(head).toMatch(/^KEY +CREATED +STATE$/)
  expect(first).toMatch(/Z {2}signs$/)
  expect(second).toMatch(/Z {2}signs from .*Z on$/)

  const replaced = await run('signing-key rotate --now')
  const [now] = await keys()
  expect([replaced.exitCode, await states(), old.includes(now?.kid ?? '')]).toEqual([0, ['signs'], false])
  expect(replaced.stdout).toStartWith(`${now?.kid} signs now`)
})

// With another identity service, the keys sign only scoped tokens.
test('berth signing-key works if another service manages the users', async () => {
  const { run } = await openKeys({ BERTH_AUTH__URL: 'http://127.0.0.1:9' })
  expect((await run('signing-key rotate')).exitCode).toBe(0)
})
