// Everything that `berth <command>` can be made to say beside a server whose secrets are canaries.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CommandRun } from '../../support/server/berth-command.ts'
import { runBerthHereWith } from '../../support/server/berth-here.ts'
import { type CanaryServer, newSecret } from './canary-server.ts'

export async function runEveryCommand(server: CanaryServer): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-canary-'))
  const environment = {
    BERTH_DATA_DIR: server.berth.dataDir,
    BERTH_IDENTITY__ADMIN_API_KEY: server.apiKey,
    BERTH_IDENTITY__ADMIN_PASSWORD: server.password,
  }
  let runs = 0
  const run = async (args: readonly string[], input = '', more: Readonly<Record<string, string>> = {}) => {
    const ran = await runBerthHereWith(input, args, { ...environment, ...more }, folder)
    server.note({ name: `the errors of berth ${args.slice(0, 2).join(' ')}`, text: ran.stderr })
    runs += 1
    return ran
  }
  const runAndNote = async (...all: Parameters<typeof run>): Promise<CommandRun> => {
    const ran = await run(...all)
    server.note({ name: `what berth ${all[0].slice(0, 2).join(' ')} printed`, text: ran.stdout })
    return ran
  }

  const passwords = [newSecret(), newSecret(' ü"\\+%&')] as const
  for (const secret of passwords) server.canaries.add({ name: 'a password on standard input', secret })
  await runAndNote(['config'])
  await runAndNote(['user', 'add', 'cli', '--password-stdin'], passwords[0])
  await runAndNote(['user', 'passwd', 'cli', '--password-stdin'], passwords[1])
  await runAndNote(['user', 'passwd', 'cli', '--password-stdin'], `${passwords[0]}\n${passwords[1]}`)
  await runAndNote(['user', 'list', '--json'])
  const { stdout, exitCode } = await run(['key', 'create', 'cli', '--name', 'made'])
  if (exitCode !== 0) throw new Error('no key was made')
  server.canaries.add({ name: 'a key that was printed', secret: stdout.trim() })
  await runAndNote(['key', 'list', 'cli', '--json'])
  await runAndNote(['key', 'revoke', 'cli', 'made'])
  await runAndNote(['account', 'list'])
  await runAndNote(['signing-key', 'list'])
  await runAndNote(['gc'])

  // Settings that are wrong, with secrets among them.
  await runAndNote(['config'], '', { BERTH_NO_SUCH_SETTING: 'x', BERTH_SERVER__PORT: 'many' })
  await runAndNote(['config'], '', { BERTH_IDENTITY__ADMIN_API: server.apiKey })
  for (const variable of ['BERTH_AUTH__URL', 'BERTH_AUTH__JWKS_URL', 'BERTH_SERVER__PUBLIC_URL']) {
    await runAndNote(['config'], '', { [variable]: `https://user:${server.apiKey}@example.com/x?y=1` })
  }
  for (const text of [
    `identity:\n  admin_api_key: "${server.apiKey}\n`,
    `identity:\n  admin_api_key: ${server.apiKey}: x\n`,
    `identity:\n  admin_api_key: [${server.apiKey}]\n`,
    `identity:\n  admin_api_key: {key: ${server.apiKey}}\n`,
    `identity:\n  admin_key: ${server.apiKey}\n`,
    `identity: ${server.apiKey}\n`,
    `identity:\n\tadmin_api_key: ${server.apiKey}\n`,
    `identity:\n  admin_api_key: *${server.apiKey}\n`,
  ]) {
    writeFileSync(join(folder, 'berth.yaml'), text)
    await runAndNote(['config'], '', { BERTH_IDENTITY__ADMIN_API_KEY: '' })
  }
  rmSync(folder, { recursive: true, force: true })
  return runs
}
