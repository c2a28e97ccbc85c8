import type { Command } from 'commander'
import { parseRoles, parseUserName } from '../identity/names.ts'
import { addUser, changeUser, getUser, showUser, type UserChangeRequest } from '../identity/users.ts'
import { readAllPages } from '../lib/paging.ts'
import { gather, parseAccount } from './arguments.ts'
import { printJson, printTable, tell, warn } from './printing.ts'
import { askPassword, readPassword } from './secret-input.ts'
import { accountOfFirstUser, asChange, configOption, type Workplace, withUsers } from './stores.ts'

interface AddOptions {
  readonly config?: string
  readonly role?: readonly string[]
  readonly account?: string
  readonly password?: true
  readonly passwordStdin?: true
}

export function addUserCommand(program: Command): void {
  const user = program
    .command('user')
    .summary('manage users')
    .description(
      'Manage the users of the embedded identity service. A running server applies a change within the time of the setting identity.cache (10 s). With auth.challenge: bearer, tokens from /v2/_token work until they expire (auth.token_lifetime).',
    )
  user
    .command('add <name>')
    .summary('add a user')
    .description('Add a user. A user without a password needs an API key: see `berth key create`.')
    .option(...configOption)
    .option(
      '--role <role>',
      'a role of the setting identity.roles, such as reader, writer or admin (repeatable)',
      gather,
    )
    .option('--account <account>', 'the account of the user (default: the account of the first user)', parseAccount)
    .option('--password', 'ask for a password (twice)')
    .option('--password-stdin', 'read the password from standard input')
    .action(add)
  user
    .command('list')
    .description('list users')
    .option(...configOption)
    .option('--account <account>', 'list only users of this account')
    .option('--json', 'print JSON')
    .action(list)
  user
    .command('disable <name>')
    .description('disable a user; the API keys are refused until `enable`; tokens end, except those from /v2/_token')
    .option(...configOption)
    .action((name: string, options: { config?: string }) => switchUser(name, true, options.config))
  user
    .command('enable <name>')
    .description('enable a disabled user; the API keys work again')
    .option(...configOption)
    .action((name: string, options: { config?: string }) => switchUser(name, false, options.config))
  user
    .command('passwd <name>')
    .description('set a new password; tokens of the user end, except those from /v2/_token')
    .option(...configOption)
    .option('--password-stdin', 'read the password from standard input')
    .action(setPassword)
  user
    .command('roles <name> [roles...]')
    .usage('[options] <name> <role>...')
    .description('replace the roles of a user')
    .option(...configOption)
    .option('--none', 'remove all roles')
    .action(setRoles)
}

async function add(givenName: string, options: AddOptions, command: Command): Promise<void> {
  if (options.password && options.passwordStdin)
    command.error('error: use either --password or --password-stdin, not both')
  const name = parseUserName(givenName)
  const roles = parseRoles(options.role ?? [])
  const work = async (place: Workplace): Promise<void> => {
    const account = options.account ?? (await accountOfFirstUser(place))
    const isNewAccount = !(await isAccountKnown(place, account))
    const password = await passwordFor(name, options)
    await addUser(place, { name, account, roles, password })
    console.log(`added ${name} to the account ${account}, ${describeRoles(roles)}`)
    warnOfRoles(place, roles)
    if (isNewAccount) tell(`${account} is a new account: ${describeFirstUse(place)}`)
    if (password === undefined)
      tell(`the user has no password and needs an API key: berth key create ${name} --name <key-name>`)
  }
  // This may be the first user, so the stores need not exist yet.
  await withUsers(options.config, asChange(work), { mustBeThere: false })
}

async function passwordFor(name: string, options: AddOptions): Promise<string | undefined> {
  if (options.passwordStdin) return readPassword(name)
  return options.password ? askPassword(name) : undefined
}

async function isAccountKnown({ metadata }: Workplace, account: string): Promise<boolean> {
  if ((await metadata.accounts.find(account)) !== undefined) return true
  return (await metadata.users.list(account, undefined, 1)).length > 0
}

function describeFirstUse({ config }: Workplace): string {
  return config.autoEnable ? 'its registry is created when it is first used' : 'enable it with `berth account enable`'
}

async function list(options: { config?: string; account?: string; json?: true }): Promise<void> {
  await withUsers(options.config, async ({ metadata }) => {
    const users = await readAllPages((after, limit) => metadata.users.list(options.account, after, limit))
    const shown = users.map(showUser)
    if (options.json) return printJson(shown)
    printTable(
      ['NAME', 'ACCOUNT', 'ROLES', 'STATE', 'PASSWORD'],
      shown.map(({ name, account, roles, disabled, hasPassword }) => [
        name,
        account,
        roles.join(', ') || 'none',
        disabled ? 'disabled' : 'enabled',
        hasPassword ? 'yes' : 'no',
      ]),
    )
  })
}

async function switchUser(name: string, isDisabled: boolean, file: string | undefined): Promise<void> {
  await withUsers(
    file,
    asChange(async (place) => {
      const warnOfRight = await changeAsOperator(place, name, { isDisabled })
      console.log(`${isDisabled ? 'disabled' : 'enabled'} ${name}`)
      warnOfRight()
    }),
  )
}

/**
 * Changes the user even if no user of the account has the right `operate` afterwards. Over HTTP this is refused. An
 * operator may need it, for example after the key of the only administrator was stolen. The result prints a warning.
 */
async function changeAsOperator(
  { metadata, config }: Workplace,
  name: string,
  change: UserChangeRequest,
): Promise<() => void> {
  let account: string | undefined
  const noteAccount = (user: { readonly account: string }): void => {
    account = user.account
  }
  await changeUser({ metadata, roles: config.roles }, name, change, undefined, noteAccount)
  return () => {
    if (account === undefined) return
    warn(
      `no user of the account ${account} has the right operate now; see \`berth user roles\` and \`berth user enable\``,
    )
  }
}

async function setPassword(name: string, options: { config?: string; passwordStdin?: true }): Promise<void> {
  await withUsers(
    options.config,
    asChange(async ({ metadata, config }) => {
      // Fails before it asks for the password of a user who does not exist.
      await getUser(metadata, name)
      const password = options.passwordStdin ? await readPassword(name) : await askPassword(name)
      await changeUser({ metadata, roles: config.roles }, name, { password })
      console.log(`set the password of ${name}; earlier tokens no longer work, except those from /v2/_token`)
      if (name === config.adminName && config.adminPassword !== undefined) {
        warn('the setting identity.admin_password restores the old password when the server starts')
      }
    }),
  )
}

interface RolesOptions {
  readonly config?: string
  readonly none?: true
}

async function setRoles(name: string, given: string[], options: RolesOptions, command: Command): Promise<void> {
  if ((given.length === 0) !== (options.none === true)) command.error('error: name one or more roles, or use --none')
  const roles = parseRoles(given)
  await withUsers(
    options.config,
    asChange(async (place) => {
      const warnOfRight = await changeAsOperator(place, name, { roles })
      console.log(`${name} has ${describeRoles(roles)}`)
      warnOfRoles(place, roles)
      warnOfRight()
    }),
  )
}

function describeRoles(roles: readonly string[]): string {
  if (roles.length === 0) return 'no roles'
  return `the role${roles.length === 1 ? '' : 's'} ${roles.join(', ')}`
}

function warnOfRoles({ config }: Workplace, roles: readonly string[]): void {
  if (roles.length === 0) warn('a user without a role has no rights')
  for (const role of roles) {
    if (!config.roles.has(role)) warn(`the role ${role} has no rights: it is not in the setting identity.roles`)
  }
}
