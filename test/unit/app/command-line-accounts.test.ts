import { describe, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { expectMisuse, failed, openWorkplace, succeeded } from './workplace.ts'

const newFolder = useTemporaryFolders('command-accounts')
const empty = { imageCount: 0, repositories: 0, manifests: 0, tags: 0, blobs: 0, blobBytes: 0 }

async function openAccounts(environment: Readonly<Record<string, string>> = {}) {
  const place = await openWorkplace(newFolder(), environment)
  const stateOf = async (name: string) => (await place.readJson<{ state: string }>(`account show ${name}`)).state
  return { ...place, stateOf, list: () => place.readJson<object[]>('account list') }
}

describe('berth account show', () => {
  test('distinguishes an account that was never enabled from an unknown one', async () => {
    const { run, readJson } = await openAccounts()
    for (const name of ['bob', 'eve']) await run(`user add ${name} --account home`)

    expect(await readJson<object>('account show home')).toEqual({
      name: 'home',
      state: 'never enabled',
      ...empty,
      users: ['bob', 'eve'],
    })
    for (const more of ['', ' --json']) {
      expect(await run(`account show hom${more}`)).toEqual(failed('no such account: hom'))
    }
  })

  test('prints lines for people', async () => {
    const { run } = await openAccounts()
    for (let n = 10; n < 33; n += 1) await run(`user add user-${n} --account home`)
    const lines = (await run('account show home')).stdout.split('\n')
    expect(lines.slice(0, 7)).toEqual([
      'account       home',
      'state         never enabled',
      'images        0',
      'repositories  0',
      'manifests     0',
      'tags          0',
      'blobs         0 (0 B)',
    ])
    expect(lines[7]).toMatch(/^users {9}user-10, user-11, .* user-29 and 3 more$/)
  })
})

test('each change of an account says what it does, can be repeated, and reaches one that was never enabled', async () => {
  const { run, stateOf } = await openAccounts()
  await run('user add bob --account home')
  const suspended = 'home is suspended: run `berth account resume home` first'
  for (const [verb, outcome, state] of [
    ['disable', succeeded('disabled home\n'), 'disabled'],
    ['disable', succeeded('disabled home\n'), 'disabled'],
    ['enable', succeeded('enabled home\n'), 'enabled'],
    ['enable', succeeded('enabled home\n'), 'enabled'],
    ['suspend', succeeded('suspended home\n'), 'suspended'],
    ['enable', failed(suspended), 'suspended'],
    ['resume', succeeded('resumed home, which is enabled\n'), 'enabled'],
    ['suspend', succeeded('suspended home\n'), 'suspended'],
    ['disable', succeeded('disabled home; it stays suspended until `berth account resume`\n'), 'suspended'],
    ['resume', succeeded('resumed home, which is disabled\n'), 'disabled'],
  ] as const) {
    expect([verb, await run(`account ${verb} home`), await stateOf('home')]).toEqual([verb, outcome, state])
  }
})

test('an unknown account can be enabled, with a warning, and nothing else', async () => {
  const { run, list, stateOf } = await openAccounts()
  for (const verb of ['disable', 'suspend', 'resume']) {
    expect(await run(`account ${verb} hom`)).toEqual(failed('no such account: hom'))
  }
  expect(await list()).toEqual([])
  const { exitCode, stdout, stderr } = await run('account enable home')
  expect([exitCode, stdout, await stateOf('home')]).toEqual([0, 'enabled home\n', 'enabled'])
  expect(stderr).toContain('the account has no users yet')
  expect((await run('account disable home')).exitCode).toBe(0)
})

test('where another service manages the users, any account can be enabled and disabled', async () => {
  const { run, readJson } = await openAccounts({ BERTH_AUTH__URL: 'http://127.0.0.1:9' })
  expect(await run('account disable theirs')).toEqual(succeeded('disabled theirs\n'))
  expect(await run('account enable other')).toEqual(succeeded('enabled other\n'))
  expect(await readJson<object>('account show theirs')).toEqual({
    name: 'theirs',
    state: 'disabled',
    ...empty,
    users: null,
  })
  expect((await run('account show theirs')).stdout).toContain('users         managed by http://127.0.0.1:9\n')
  expect((await run('account show nobody')).exitCode).toBe(1)
})

test('a text that cannot be the name of an account is refused, and printed without control characters', async () => {
  const { run, list } = await openAccounts()
  for (const [verb, name] of [
    ['enable', ''],
    ['disable', 'a\u001b[2J'],
    ['enable', ' home'],
    ['enable', 'x'.repeat(256)],
  ] as const) {
    expectMisuse(await run(`account ${verb}`, name), 'the name of an account')
  }
  expect(await list()).toEqual([])
})

test('berth account list lists accounts by name, also those that have users and were never enabled', async () => {
  const { run, list } = await openAccounts()
  for (const words of ['user add bob --account b-never', 'account enable c-on', 'user add kim --account a-off']) {
    await run(words)
  }
  await run('account disable a-off')

  expect(await list()).toEqual([
    { name: 'a-off', state: 'disabled', imageCount: 0 },
    { name: 'b-never', state: 'never enabled', imageCount: 0 },
    { name: 'c-on', state: 'enabled', imageCount: 0 },
  ])
  expect((await run('account list')).stdout.split('\n')).toEqual([
    'ACCOUNT  STATE          IMAGES',
    'a-off    disabled       0',
    'b-never  never enabled  0',
    'c-on     enabled        0',
    '',
  ])
})

test('an account is created before its first use, and deleted with its users when it is disabled and --yes is given', async () => {
  const { run, stateOf, list } = await openAccounts()
  await run('user add eve --account other')
  expect(await run('account create home --disabled')).toEqual(succeeded('created home, which is disabled\n'))
  expect(await run('account create home')).toEqual(failed('the account home exists already, and is disabled'))
  await run('user add bob --account home')
  await run('account enable home')

  expect((await run('account delete home')).stderr).toContain(
    'this would delete home, which is enabled: 0 repositories',
  )
  expect((await run('account delete home --yes')).stderr).toContain('run `berth account disable home` first')
  await run('account disable home')
  expect((await run('account delete home --yes')).stdout).toMatch(/^deleted home: \d+ rows; its name is free when/)
  expect(await stateOf('home')).toBe('suspended')
  expect(await run('account resume home')).toEqual(failed('home is being deleted and stays suspended'))
  expect((await run('account enable home')).stderr).toContain('home is suspended')
  expect((await list()).map((account) => (account as { name: string }).name)).toEqual(['home', 'other'])
  expect((await run('user list')).stdout).not.toContain('bob')
  expect(await run('account delete hom --yes')).toEqual(failed('no such account: hom'))
})
