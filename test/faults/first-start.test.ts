// What a start tells its operator: where to log in, and with what.
import { afterEach, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import { freePorts } from '../support/basics/child-server.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { until } from '../support/clocks/until.ts'
import { runBerthHere } from '../support/server/berth-here.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'

const newFolder = useTemporaryFolders('first-start')
const noPresets = { BERTH_IDENTITY__ADMIN_API_KEY: '', BERTH_IDENTITY__ADMIN_PASSWORD: '' }

const started: BerthProcess[] = []
afterEach(async () => {
  for (const berth of started.splice(0)) await berth.kill()
})

/** A server without preset credentials, and all that its start printed. */
async function start(dataDir: string, settings: Readonly<Record<string, string>> = {}) {
  const berth = await startBerth({ dataDir, settings: { ...noPresets, ...settings } })
  started.push(berth)
  await until('the login line is printed', () => berth.output().includes('docker login'))
  return berth
}

function keyShownBy(berth: BerthProcess): string | undefined {
  return /Your API key .*: {2}(berth_\S+)/.exec(berth.output())?.[1]
}

const explanation = 'npm run --silent berth -- key create admin --name mine\n'
const byNpm = { npm_execpath: '/usr/bin/npm' }

test('a start whose port does not open leaves no key behind: the next start makes it and shows it', async () => {
  const dataDir = newFolder()
  const [port = 0] = await freePorts(1)
  const other = Bun.serve({ hostname: '127.0.0.1', port, reusePort: false, fetch: () => new Response('') })
  const failed = await start(dataDir, { BERTH_SERVER__PORT: String(port) }).catch(String)
  await other.stop(true)
  expect(String(failed)).toContain('server.port')
  expect(String(failed)).not.toContain('Your API key')

  const berth = await start(dataDir)
  const key = keyShownBy(berth) ?? 'none'
  expect(berth.output()).toContain(`\n  echo ${key} | docker login ${berth.host} -u apikey --password-stdin\n`)
  expect((await fetch(`${berth.url}/v2/`, { headers: { 'x-api-key': key } })).status).toBe(200)
  await berth.stop()
})

test('until a key is used, every start says how to make one; a restart, or the use of a key, shows none', async () => {
  const dataDir = newFolder()
  const first = await start(dataDir, byNpm)
  expect([keyShownBy(first) === undefined, first.output().includes(explanation)]).toEqual([false, false])
  await first.stop()
  const second = await start(dataDir, byNpm)
  expect([keyShownBy(second), second.output().includes(explanation)]).toEqual([undefined, true])

  const args = explanation.trim().split(' -- ')[1]?.split(' ') ?? []
  const lost = await runBerthHere(args, { BERTH_DATA_DIR: dataDir }, newFolder())
  expect(lost.exitCode).toBe(0)
  await second.stop()
  // The key is lost. The next line must work too, and without npm there is another command.
  const again = await start(dataDir, { npm_execpath: '' })
  expect(again.output()).toContain('\n  berth key create admin --name mine-2\n')
  args[args.length - 1] = 'mine-2'
  const made = await runBerthHere(args, { BERTH_DATA_DIR: dataDir }, newFolder())
  expect(made.stderr).toContain(`docker login ${again.host} -u apikey`)
  const headers = { 'x-api-key': made.stdout.trim() }
  expect((await fetch(`${again.url}/v2/`, { headers })).status).toBe(200)
  await again.stop()

  const third = await start(dataDir)
  expect([keyShownBy(third), third.output().includes('key create')]).toEqual([undefined, false])
  await third.stop()
})

test('a server on all addresses names one that can be reached, its version, and forgets its address at the end', async () => {
  const dataDir = newFolder()
  const berth = await start(dataDir, { BERTH_SERVER__HOST: '0.0.0.0' })
  const { version } = packageJson
  const note = join(dataDir, 'server.address')

  expect(berth.output()).toContain(`Berth ${version} is ready at ${berth.url}\n`)
  expect(berth.output()).toMatch(new RegExp(`"msg":"ready","url":"http://127.0.0.1:\\d+","version":"${version}"`))
  expect(berth.output()).not.toContain('0.0.0.0')
  expect(await (await fetch(`${berth.url}/healthz`)).json()).toEqual({ status: 'ok', version })
  expect(await Bun.file(note).text()).toBe(`${berth.host}\n`)
  await berth.stop()
  expect(existsSync(note)).toBe(false)
})

test.each(['of a server that was killed', 'that a full disk left empty'])(
  'an address file %s is not used',
  async (which) => {
    const dataDir = newFolder()
    const berth = await start(dataDir)
    if (which === 'of a server that was killed') await berth.kill()
    // A full disk lets a file be created, and nothing be written to it.
    else await Bun.write(join(dataDir, 'server.address'), '')

    const made = await runBerthHere(
      ['key', 'create', 'admin', '--name', 'ci'],
      { BERTH_DATA_DIR: dataDir },
      newFolder(),
    )
    expect(made.stderr).toContain('docker login 127.0.0.1:5000 -u apikey')
  },
)
