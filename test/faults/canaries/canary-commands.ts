// Everything that `berth <command>` can be made to say beside a server whose secrets are canaries.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
    const command = `berth ${args.slice(0, 2).join(' ')}`
    server.note({ name: `the errors of ${command}`, text: ran.stderr })
    // The output of `key create` is the key itself.
    if (args[1] === 'create') server.canaries.add({ name: 'a key that was printed', secret: ran.stdout.trim() })
    else server.note({ name: `what ${command} printed`, text: ran.stdout })
    runs += 1
  }

  const passwords = [newSecret(), newSecret(' ü"\\+%&')] as const
  for (const secret of passwords) server.canaries.add({ name: 'a password on standard input', secret })
  await run(['config'])
  await run(['user', 'add', 'cli', '--password-stdin'], passwords[0])
  await run(['user', 'passwd', 'cli', '--password-stdin'], passwords[1])
  await run(['user', 'passwd', 'cli', '--password-stdin'], `${passwords[0]}\n${passwords[1]}`)
  await run(['user', 'list', '--json'])
  await run(['key', 'create', 'cli', '--name', 'made'])
  await run(['key', 'list', 'cli', '--json'])
  await run(['key', 'revoke', 'cli', 'made'])
  await run(['account', 'list'])
  await run(['signing-key', 'list'])
  await run(['gc'])

  // Settings that are wrong, with secrets among them.
  await run(['config'], '', { BERTH_NO_SUCH_SETTING: 'x', BERTH_SERVER__PORT: 'many' })
  await run(['config'], '', { BERTH_IDENTITY__ADMIN_API: server.apiKey })
  for (const variable of ['BERTH_AUTH__URL', 'BERTH_AUTH__JWKS_URL', 'BERTH_SERVER__PUBLIC_URL']) {
    await run(['config'], '', { [variable]: `https://user:${server.apiKey}@example.com/x?y=1` })
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
    await run(['config'], '', { BERTH_IDENTITY__ADMIN_API_KEY: '' })
  }
  rmSync(folder, { recursive: true, force: true })
  return runs
}
