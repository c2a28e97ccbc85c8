import { readConfig } from '../app/config.ts'
import { openStores, type Stores } from '../app/stores.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { parseRepositoryName } from '../oci/names.ts'
import { changeUnlessReadOnly } from '../registry/read-only.ts'
import { parseAccount } from './arguments.ts'
import { recordCommand } from './current-command.ts'

type Config = ReturnType<typeof readConfig>

/** The settings and the opened stores that a command works with. */
export interface Workplace extends Stores {
  readonly config: Config
}

/** The option that every command has. */
export const configOption = ['--config <file>', 'settings file (default: berth.yaml, if it exists)'] as const

/** The option of commands for one repository. */
export const accountOption = [
  '--account <account>',
  'the account of the repository (default: the account of the first user)',
  parseAccount,
] as const

/** Commands use the clock of the system. */
export const presentClock = { now: () => Date.now() }

/** Opens the stores, runs the work and closes the stores. With `mustBeThere`, the stores must already exist. */
export async function withStores(
  file: string | undefined,
  work: (place: Workplace) => Promise<void>,
  { mustBeThere = true } = {},
): Promise<void> {
  const config = readConfig(file)
  const stores = await openStores(config, { mustBeThere })
  try {
    await work({ config, ...stores })
  } finally {
    await stores.metadata.close()
    await stores.blobs.close()
  }
}

/** Work that changes something. It is refused while the registry is moved to other stores, and recorded afterwards. */
export function asChange(work: (place: Workplace) => Promise<void>): (place: Workplace) => Promise<void> {
  return (place) =>
    changeUnlessReadOnly(place, async () => {
      await work(place)
      await recordCommand(place)
    })
}

/** Refuses if the account does not exist. Undefined name: the account of the first user. */
export async function getAccount(place: Workplace, name: string | undefined) {
  const given = name ?? (await accountOfFirstUser(place))
  const found = await place.metadata.accounts.find(given)
  if (found === undefined) throw new Error(`there is no account ${given}; its first use creates it`)
  return found
}

/** Refuses if there is no such account. */
export async function getRepositoryKey(place: Workplace, account: string | undefined, repository: string) {
  const name = parseRepositoryName(repository)
  const found = await place.metadata.accounts.find(account ?? (await accountOfFirstUser(place)))
  if (found === undefined) throw new RegistryRefusal('name-unknown', { name })
  return { accountId: found.id, repository: name }
}

/** Another identity service uses the account `default` if it names none. */
export async function accountOfFirstUser({ metadata, config }: Workplace): Promise<string> {
  if (config.authUrl !== undefined) return 'default'
  const first = await metadata.users.find(config.adminName)
  if (first !== undefined) return first.account
  throw new Error(
    `the user ${config.adminName}, whose account is the default, does not exist yet: start the server once, or name an account with --account`,
  )
}

/** As `withStores`, for commands that need the embedded identity service. */
export async function withUsers(
  file: string | undefined,
  work: (place: Workplace) => Promise<void>,
  options?: { readonly mustBeThere: boolean },
): Promise<void> {
  const { authUrl } = readConfig(file)
  if (authUrl !== undefined)
    throw new Error(`users and API keys are managed by the identity service at ${authUrl} (auth.url)`)
  await withStores(file, work, options)
}
