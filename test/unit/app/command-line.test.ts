import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerth } from '../../support/server/berth-command.ts'

const newFolder = useTemporaryFolders('command')

describe('settings that are wrong, told by the command', () => {
  test('end every command with code 2, all faults on the error stream, and nothing begun', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'berth.yaml'), 'server: { port: 70000 }\nzzz: 1\nidentity: { admin_password: hush }\n')
    for (const command of ['serve', 'config', 'gc']) {
      const { exitCode, stdout, stderr } = await runBerth([command], { BERTH_SERVER__IDLE: 'soon' }, folder)
      expect([command, exitCode, stdout]).toEqual([command, 2, ''])
      for (const words of ['server.port: 70000', 'zzz', 'identity.admin_password', 'BERTH_SERVER__IDLE']) {
        expect(stderr).toContain(words)
      }
      expect(stderr).not.toContain('hush')
      expect(stderr).not.toContain('    at ')
    }
  })

  test.each([[['fly']], [['config', '--fly']], [['config', '--config']], [['gc', '--lease', 'soon', '--fly']], [[]]])(
    'arguments %j that are none end with code 2',
    async (args) => {
      expect((await runBerth(args, {}, newFolder())).exitCode).toBe(2)
    },
  )

  test('--version is that of the package', async () => {
    const { exitCode, stdout } = await runBerth(['--version'], {}, newFolder())
    expect([exitCode, stdout]).toEqual([0, `berth ${packageJson.version}\n`])
  })

  test('help is no failure', async () => {
    const { exitCode, stdout } = await runBerth(['--help'], {}, newFolder())
    expect([exitCode, stdout.includes('serve')]).toEqual([0, true])
  })
})

test('the settings in force are printed with the secrets masked', async () => {
  const environment = {
    BERTH_IDENTITY__ADMIN_API_KEY: 'canary-key-0123456789',
    BERTH_IDENTITY__ADMIN_PASSWORD: 'canary-word-0123456789',
    BERTH_SERVER__PORT: '6000',
  }
  const { exitCode, stdout, stderr } = await runBerth(['config'], environment, newFolder())

  expect(exitCode).toBe(0)
  expect(stdout).toContain('server.port: 6000')
  expect(stdout).toContain('identity.admin_api_key: [secret]')
  expect(stdout + stderr).not.toContain('canary')
})
