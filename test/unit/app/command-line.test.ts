// What all commands share: help, settings, and how misuse is reported.
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerth } from '../../support/server/berth-command.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'

const newFolder = useTemporaryFolders('command')
const emptyFolder = newFolder()
const run = (...args: string[]) => runBerthHere(args, {}, emptyFolder)

test('the process ends with the exit code of the command, and prints what the command prints', async () => {
  expect(await runBerth(['--version'], {}, emptyFolder)).toEqual({
    exitCode: 0,
    stdout: `berth ${packageJson.version}\n`,
    stderr: '',
  })
  expect((await runBerth(['fly'], {}, emptyFolder)).exitCode).toBe(2)
})

test('invalid settings end every command with code 2, all faults on the error stream, before it does anything', async () => {
  const folder = newFolder()
  writeFileSync(join(folder, 'berth.yaml'), 'server: { port: 70000 }\nzzz: 1\nidentity: { admin_password: hush }\n')
  for (const command of ['serve', 'config', 'gc']) {
    const { exitCode, stdout, stderr } = await runBerthHere([command], { BERTH_SERVER__IDLE: 'soon' }, folder)
    expect([command, exitCode, stdout]).toEqual([command, 2, ''])
    for (const words of ['server.port: 70000', 'zzz', 'identity.admin_password', 'BERTH_SERVER__IDLE']) {
      expect(stderr).toContain(words)
    }
    expect(stderr).not.toContain('hush')
    expect(stderr).not.toContain('    at ')
  }
})

test.each([
  [['usr'], "berth: unknown command 'usr' (Did you mean user?)\n"],
  [['user', 'lst'], "berth: unknown command 'lst' (Did you mean list?)\n"],
  [['account', 'show', 'a', '--jsn'], "berth: unknown option '--jsn' (Did you mean --json?)\n"],
  [['config', '--config'], expect.stringContaining('argument missing')],
  [['gc', '--lease', 'soon', '--fly'], expect.stringContaining('--lease')],
  [[], expect.stringContaining('Usage: berth')],
])('%j is refused with code 2', async (args, stderr) => {
  expect(await run(...args)).toEqual({ exitCode: 2, stdout: '', stderr })
})

const commands: Readonly<Record<string, readonly string[]>> = {
  '': [
    'serve',
    'gc',
    'upload',
    'repo',
    'tag',
    'image',
    'policy',
    'config',
    'migrate',
    'migrate-store',
    'audit',
    'user',
    'key',
    'account',
    'signing-key',
  ],
  user: ['add <name>', 'list', 'disable <name>', 'enable <name>', 'passwd <name>', 'roles <name> <role>...'],
  key: ['create <user>', 'list <user>', 'revoke <user> <key-name>'],
  account: [
    'list',
    'show <account>',
    'enable <account>',
    'disable <account>',
    'suspend <account>',
    'resume <account>',
    'create <account>',
    'delete <account>',
    'quota <account>',
  ],
  upload: ['list', 'cancel <id>'],
  tag: [
    'show <repository> <tag>',
    'history <repository> <tag>',
    'restore <repository> <tag>',
    'delete <repository> <pattern>',
  ],
  image: [
    'untagged <repository>',
    'delete <repository> <digest>',
    'deleted <repository>',
    'undelete <repository> <digest>',
    'purge <repository> <digest>',
  ],
  repo: ['list', 'show <repository>', 'delete <repository>', 'undelete <repository>'],
  'signing-key': ['list', 'rotate'],
}

describe.each(Object.entries(commands))('berth %s --help', (command, parts) => {
  const words = command === '' ? [] : [command]

  test('lists all commands and what they do', async () => {
    const { exitCode, stdout, stderr } = await run(...words, '--help')
    expect([exitCode, stderr]).toEqual([0, ''])
    const listed = [...stdout.matchAll(/^ {2}([a-z][^\n]*?) {2,}\S/gm)].map(([, term = '']) => term)
    const own = listed.filter((term) => term !== 'help [command]').map((term) => term.replace(' <command>', ''))
    expect(own).toEqual([...parts])
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(90)
  })

  test('has a page for each command; without a command it goes to the error stream', async () => {
    if (command === '') return
    for (const part of parts) {
      const { exitCode, stdout } = await run(command, part.split(' ')[0] ?? '', '--help')
      expect([part, exitCode, stdout.includes('--config <file>')]).toEqual([part, 0, true])
      expect(stdout).toStartWith(`Usage: berth ${command} ${part.replace(/^\S+/, '$& [options]')}\n\n`)
    }
    const { exitCode, stdout, stderr } = await run(command)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toStartWith(`Usage: berth ${command}`)
  })
})
