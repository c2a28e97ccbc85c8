import { describe, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'

const folder = useTemporaryFolders('command-help')()
const run = (...args: string[]) => runBerthHere(args, {}, folder)

const commands: Readonly<Record<string, readonly string[]>> = {
  '': ['serve', 'gc', 'upload', 'config', 'migrate', 'migrate-store', 'user', 'key', 'account', 'signing-key'],
  user: ['add <name>', 'list', 'disable <name>', 'enable <name>', 'passwd <name>', 'roles <name> <role>...'],
  key: ['create <user>', 'list <user>', 'revoke <user> <key-name>'],
  account: ['list', 'show <account>', 'enable <account>', 'disable <account>', 'suspend <account>', 'resume <account>'],
  upload: ['list', 'cancel <id>'],
  'signing-key': ['list', 'rotate'],
}

describe('berth --help', () => {
  for (const [command, parts] of Object.entries(commands)) {
    const words = command === '' ? [] : [command]

    test(`names what there is and what it does: berth ${command}`, async () => {
      const { exitCode, stdout, stderr } = await run(...words, '--help')
      expect([exitCode, stderr]).toEqual([0, ''])
      const listed = [...stdout.matchAll(/^ {2}([a-z][^\n]*?) {2,}\S/gm)].map(([, term = '']) => term)
      const own = listed.filter((term) => term !== 'help [command]').map((term) => term.replace(' <command>', ''))
      expect(own).toEqual([...parts])
      expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(90)
    })

    if (command !== '') {
      test(`every part explains itself and takes --config: berth ${command}`, async () => {
        for (const part of parts) {
          const { exitCode, stdout } = await run(command, part.split(' ')[0] ?? '', '--help')
          expect([part, exitCode, stdout.includes('--config <file>')]).toEqual([part, 0, true])
          expect(stdout).toStartWith(`Usage: berth ${command} ${part.replace(/^\S+/, '$& [options]')}\n\n`)
        }
      })

      test(`without saying what, ends with code 2 and the help on the error stream: berth ${command}`, async () => {
        const { exitCode, stdout, stderr } = await run(command)
        expect([exitCode, stdout]).toEqual([2, ''])
        expect(stderr).toStartWith(`Usage: berth ${command}`)
      })
    }
  }
})

test.each([
  [['usr'], "berth: unknown command 'usr' (Did you mean user?)\n"],
  [['user', 'lst'], "berth: unknown command 'lst' (Did you mean list?)\n"],
  [['account', 'show', 'a', '--jsn'], "berth: unknown option '--jsn' (Did you mean --json?)\n"],
])('a slip of the pen (%j) is answered on one line', async (args, stderr) => {
  expect(await run(...args)).toEqual({ exitCode: 2, stdout: '', stderr })
})
