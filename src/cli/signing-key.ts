import type { Command } from 'commander'
import { openKeys } from '../app/identity.ts'
import { type KeyRing, publishAheadMs } from '../identity/key-ring.ts'
import { formatTime } from '../lib/quantities.ts'
import { printJson, printTable, showTime, tell } from './printing.ts'
import { asChange, configOption, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly json?: true
  readonly now?: true
}

export function addSigningKeyCommand(program: Command): void {
  const signingKey = program
    .command('signing-key')
    .summary('manage the keys that sign tokens')
    .description(
      'Manage the keys that sign tokens. They are replaced automatically, as often as the setting identity.key_rotation says.',
    )
  signingKey
    .command('list')
    .description('list the keys and their states')
    .option(...configOption)
    .option('--json', 'print JSON')
    .action(list)
  signingKey
    .command('rotate')
    .description('create the next key; tokens that are already issued stay valid')
    .option(...configOption)
    .option('--now', 'replace all keys at once, which ends all tokens; use it if a key was stolen')
    .action(rotate)
}

/** The stores must exist: a command that only looks must not create keys. */
async function withRing(file: string | undefined, work: (ring: KeyRing) => Promise<void>): Promise<void> {
  await withStores(file, async ({ signingKeys, config }) => work(await openKeys(signingKeys, config)))
}

function list(options: Options): Promise<void> {
  return withRing(options.config, async (ring) => printKeys(ring, options.json === true))
}

function printKeys(ring: KeyRing, isJson: boolean): void {
  const signing = ring.signing().kid
  const all = ring.list()
  const at = all.findIndex(({ kid }) => kid === signing)
  const keys = all.map(({ kid, createdAt }, index) => ({
    kid,
    createdAt,
    state: index === at ? 'signs' : index < at ? 'verifies only' : 'next',
  }))
  if (isJson) {
    printJson(keys.map(({ createdAt, ...rest }) => ({ ...rest, createdAt: formatTime(createdAt) })))
    return
  }
  printTable(
    ['KEY', 'CREATED', 'STATE'],
    keys.map(({ kid, createdAt, state }) => [
      kid,
      showTime(createdAt, ''),
      state === 'next' ? `signs from ${showTime(createdAt + publishAheadMs, '')} on` : state,
    ]),
  )
}

function rotate(options: Options): Promise<void> {
  return withStores(
    options.config,
    asChange(async ({ signingKeys, config }) => replaceKey(await openKeys(signingKeys, config), options.now === true)),
  )
}

async function replaceKey(ring: KeyRing, isNow: boolean): Promise<void> {
  if (isNow) {
    const { kid } = await ring.replaceAll()
    console.log(`${kid} signs now; all tokens that were issued before are invalid`)
    tell('a running server applies this within about a minute')
    return
  }
  const { kid, createdAt } = await ring.rotate()
  console.log(`${kid} signs from ${showTime(createdAt + publishAheadMs, '')} on`)
}
