import type { Command } from 'commander'
import { findLoginHost } from '../app/server-address.ts'
import { createApiKey, listApiKeys, revokeApiKey, showApiKey } from '../identity/api-keys.ts'
import { parseKeyName, presetKeyName } from '../identity/names.ts'
import { rightsOf } from '../identity/rights.ts'
import { getUser } from '../identity/users.ts'
import { gatherPatterns, gatherRights, parseEnd, parseExpiry } from './arguments.ts'
import { printJson, printTable, showTime, tell, warn } from './printing.ts'
import { asChange, configOption, presentClock, type Workplace, withUsers } from './stores.ts'

interface CreateOptions {
  readonly config?: string
  readonly name: string
  readonly expires?: number
  readonly expiresAt?: number
  readonly right?: ReturnType<typeof gatherRights>
  readonly repository?: ReturnType<typeof gatherPatterns>
}

type User = Awaited<ReturnType<typeof getUser>>

export function addKeyCommand(program: Command): void {
  const key = program
    .command('key')
    .summary('manage the API keys of users')
    .description(
      'Manage the API keys of users. A new key works at once. A running server refuses a revoked key within the time of the setting identity.cache (10 s). With auth.challenge: bearer, tokens from /v2/_token work until they expire (auth.token_lifetime).',
    )
  key
    .command('create <user>')
    .summary('create a key and print it')
    .description(
      'Create a key and print it to standard output. The key is shown only once, because Berth stores only its hash.',
    )
    .option(...configOption)
    .requiredOption('--name <key-name>', 'the name of the key, unique for the user')
    .option(
      '--expires <duration>',
      'how long the key is valid, such as 12h or 90d (default: until it is revoked)',
      parseExpiry,
    )
    .option('--expires-at <time>', 'when the key expires, such as 2030-01-31T12:00:00Z', parseEnd)
    .option(
      '--right <right>',
      'limit the key to this right of the user: pull, push, delete or operate (repeatable)',
      gatherRights,
    )
    .option(
      '--repository <pattern>',
      "limit the key to these repositories, such as 'team/*' (repeatable)",
      gatherPatterns,
    )
    .action(create)
  key
    .command('list <user>')
    .description('list the names and limits of the keys of a user')
    .option(...configOption)
    .option('--json', 'print JSON')
    .action(list)
  key
    .command('revoke <user> <key-name>')
    .description('revoke a key by its name')
    .option(...configOption)
    .action(revoke)
}

async function create(userName: string, options: CreateOptions, command: Command): Promise<void> {
  const { expires, expiresAt = expires, right: rights, repository: repositories } = options
  if (expires !== undefined && options.expiresAt !== undefined) {
    command.error('error: use either --expires or --expires-at, not both')
  }
  const name = parseKeyName(options.name)
  await withUsers(
    options.config,
    asChange(async (place) => {
      const { metadata, config } = place
      const user = await getUser(metadata, userName)
      const needs = { metadata, clock: presentClock }
      const key = await createApiKey(needs, userName, { name, expiresAt, rights, repositories }, config.keysPerUser)
      console.log(key)
      tell('this is the only time that the key is shown. Use it as the password of:')
      process.stderr.write(`\n  docker login ${findLoginHost(config)} -u apikey\n\n`)
      warnOfLimits(place, user, rights)
    }),
  )
}

function warnOfLimits({ config }: Workplace, user: User, rights: CreateOptions['right']): void {
  const own = rightsOf(user.roles, config.roles)
  const missing = (rights ?? []).filter((right) => !own.has(right))
  if (user.isDisabled) warn(`${user.name} is disabled: the key works only after the user is enabled`)
  if (own.size === 0) warn(`${user.name} has no rights, so the key has none`)
  else if (missing.length > 0) warn(`${user.name} does not have ${missing.join(', ')}, so the key does not either`)
}

async function list(userName: string, options: { config?: string; json?: true }): Promise<void> {
  await withUsers(options.config, async ({ metadata }) => {
    const keys = await listApiKeys(metadata, await getUser(metadata, userName))
    if (options.json) {
      printJson(keys.map(showApiKey))
      return
    }
    const now = presentClock.now()
    printTable(
      ['NAME', 'CREATED', 'EXPIRES', 'LAST USED', 'RIGHTS', 'REPOSITORIES'],
      keys.map(({ name, createdAt, expiresAt = Infinity, lastUsedAt, rights, repositories }) => [
        name,
        showTime(createdAt, ''),
        expiresAt <= now ? 'expired' : showTime(expiresAt === Infinity ? undefined : expiresAt, 'never'),
        showTime(lastUsedAt, 'never'),
        rights?.join(', ') ?? 'all of the user',
        repositories?.join(', ') ?? 'all',
      ]),
    )
  })
}

async function revoke(userName: string, name: string, options: { config?: string }): Promise<void> {
  await withUsers(
    options.config,
    asChange(async ({ metadata, config }) => {
      await revokeApiKey(metadata, await getUser(metadata, userName), name)
      console.log(`revoked ${name} of ${userName}`)
      if (userName === config.adminName && name === presetKeyName && config.adminApiKey !== undefined) {
        warn('the setting identity.admin_api_key restores this key when the server starts')
      }
    }),
  )
}
