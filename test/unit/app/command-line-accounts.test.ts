import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'
import { layEmptyData } from '../../support/stores/empty-data.ts'

const newFolder = useTemporaryFolders('command-accounts')

async function newWorkplace(environment: Readonly<Record<string, string>> = {}) {
  const folder = newFolder()
  await layEmptyData(join(folder, 'data'))
  const run = (...args: string[]) => runBerthHere(args, environment, folder)
  const answer = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await run(...args, '--json')
    expect([exitCode, stderr]).toEqual([0, ''])
    return JSON.parse(stdout) as unknown
  }
  return { run, answer, folder }
}

const empty = { imageCount: 0, repositories: 0, manifests: 0, tags: 0, blobs: 0, blobBytes: 0 }

describe('berth account show', () => {
  test('distinguishes an account that was never enabled from an unknown one', async () => {
    const { run, answer } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home')
    await run('user', 'add', 'eve', '--account', 'home')

    expect(await answer('account', 'show', 'home')).toEqual({
      name: 'home',
      state: 'never enabled',
      ...empty,
      users: ['bob', 'eve'],
    })
    for (const args of [[], ['--json']]) {
      expect(await run('account', 'show', 'hom', ...args)).toEqual({
        exitCode: 1,
        stdout: '',
        stderr: 'berth: no such account: hom\n',
      })
    }
  })

  test('prints lines for people', async () => {
    const { run } = await newWorkplace()
    for (let n = 10; n < 33; n += 1) await run('user', 'add', `user-${n}`, '--account', 'home')
    const { stdout } = await run('account', 'show', 'home')
    const lines = stdout.split('\n')
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

describe('berth account enable and disable', () => {
  test('change the state, say so, and can be repeated', async () => {
    const { run, answer } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home')
    for (const [verb, state] of [
      ['enable', 'enabled'],
      ['enable', 'enabled'],
      ['disable', 'disabled'],
      ['disable', 'disabled'],
      ['enable', 'enabled'],
    ] as const) {
      const done = await run('account', verb, 'home')
      expect([verb, done]).toEqual([verb, { exitCode: 0, stdout: `${state} home\n`, stderr: '' }])
      expect(await answer('account', 'show', 'home')).toMatchObject({ state })
    }
  })

  test('disable reaches an account that was never enabled', async () => {
    const { run, answer } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home')
    await run('account', 'disable', 'home')
    expect(await answer('account', 'show', 'home')).toMatchObject({ state: 'disabled' })
  })

  test('an unknown account can be enabled, with a warning, but not disabled', async () => {
    const { run, answer } = await newWorkplace()
    const slip = await run('account', 'disable', 'hom')
    expect(slip).toEqual({ exitCode: 1, stdout: '', stderr: 'berth: no such account: hom\n' })
    expect(await answer('account', 'list')).toEqual([])
    const begun = await run('account', 'enable', 'home')
    expect([begun.exitCode, begun.stdout]).toEqual([0, 'enabled home\n'])
    expect(begun.stderr).toContain('the account has no users yet')
    expect(await answer('account', 'show', 'home')).toEqual({ name: 'home', state: 'enabled', ...empty, users: [] })
    expect((await run('account', 'disable', 'home')).exitCode).toBe(0)
  })

  test('where another service keeps the users, any account may be begun and ended', async () => {
    const { run, answer } = await newWorkplace({ BERTH_AUTH__URL: 'http://127.0.0.1:9' })
    expect(await run('account', 'disable', 'theirs')).toEqual({ exitCode: 0, stdout: 'disabled theirs\n', stderr: '' })
    expect(await run('account', 'enable', 'other')).toEqual({ exitCode: 0, stdout: 'enabled other\n', stderr: '' })
    expect(await answer('account', 'show', 'theirs')).toEqual({
      name: 'theirs',
      state: 'disabled',
      ...empty,
      users: null,
    })
    expect((await run('account', 'show', 'theirs')).stdout).toContain('users         managed by http://127.0.0.1:9\n')
    expect((await run('account', 'show', 'nobody')).exitCode).toBe(1)
  })

  test.each([
    ['enable', ''],
    ['disable', 'a\u001b[2J'],
    ['enable', ' home'],
    ['enable', 'x'.repeat(256)],
  ])('%s of %j ends with code 2', async (verb, name) => {
    const { run, answer } = await newWorkplace()
    const { exitCode, stdout, stderr } = await run('account', verb, name)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^berth: .*\n$/)
    expect(stderr).not.toContain('\u001b')
    expect(await answer('account', 'list')).toEqual([])
  })
})

describe('berth account suspend and resume', () => {
  test('keep an account off, whatever is asked for meanwhile, and bring back the state of before', async () => {
    const { run, answer } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home')
    const stateOf = async () => ((await answer('account', 'show', 'home')) as { state: string }).state
    const told = async (verb: string) => {
      const { exitCode, stdout, stderr } = await run('account', verb, 'home')
      return [exitCode, stdout + stderr]
    }

    expect(await told('suspend')).toEqual([0, 'suspended home\n'])
    expect(await told('enable')).toEqual([1, 'berth: home is suspended: run `berth account resume home` first\n'])
    expect(await stateOf()).toBe('suspended')
    expect(await told('resume')).toEqual([0, 'resumed home, which is enabled\n'])

    expect(await told('suspend')).toEqual([0, 'suspended home\n'])
    expect(await told('disable')).toEqual([0, 'disabled home; it stays suspended until `berth account resume`\n'])
    expect(await told('resume')).toEqual([0, 'resumed home, which is disabled\n'])
    for (const verb of ['suspend', 'resume']) {
      expect((await run('account', verb, 'hom')).stderr).toBe('berth: no such account: hom\n')
    }
  })
})

describe('berth account list', () => {
  test('lists accounts by name, also those that have users and were never enabled', async () => {
    const { run, answer } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'b-never')
    await run('user', 'add', 'eve', '--account', 'b-never')
    await run('account', 'enable', 'c-on')
    await run('user', 'add', 'kim', '--account', 'a-off')
    await run('account', 'disable', 'a-off')

    expect(await answer('account', 'list')).toEqual([
      { name: 'a-off', state: 'disabled', imageCount: 0 },
      { name: 'b-never', state: 'never enabled', imageCount: 0 },
      { name: 'c-on', state: 'enabled', imageCount: 0 },
    ])
    expect((await run('account', 'list')).stdout.split('\n')).toEqual([
      'ACCOUNT  STATE          IMAGES',
      'a-off    disabled       0',
      'b-never  never enabled  0',
      'c-on     enabled        0',
      '',
    ])
  })
})
