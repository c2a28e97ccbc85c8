import type { Command } from 'commander'
import { nameBlockedMs } from '../app/registry-settings.ts'
import { formatBytes } from '../lib/quantities.ts'
import { continueAccountDeletions, requestAccountDeletion } from '../registry/account-deletion.ts'
import { disableAccount, enableAccount, findAccount } from '../registry/accounts.ts'
import { parseAccount } from './arguments.ts'
import { asChange, configOption, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly disabled?: true
  readonly yes?: true
}

export function addAccountLifecycle(account: Command): void {
  account
    .command('create')
    .argument('<account>', 'name of the new account', parseAccount)
    .description('create an account before its first use')
    .option(...configOption)
    .option('--disabled', 'create it disabled; its users with the right `operate` can enable it')
    .action(create)
  account
    .command('delete')
    .argument('<account>', 'name of an account that is disabled or suspended', parseAccount)
    .summary('delete an account with its content, users and keys')
    .description(
      'Delete an account with all of its content, users, keys, policies, events and entries of the audit log. This cannot be undone. Without --yes, print what would be deleted. If the command is interrupted, the server continues the deletion with its next collection, and so does a repeated command. The bytes are removed after the quarantine.',
    )
    .option(...configOption)
    .option('--yes', 'delete it')
    .action(remove)
}

async function create(name: string, { config, disabled }: Options): Promise<void> {
  await withStores(
    config,
    asChange(async (place) => {
      const found = await place.metadata.accounts.find(name)
      if (found !== undefined) throw new Error(`the account ${name} exists already, and is ${found.state}`)
      if (disabled) await disableAccount(place, name)
      else await enableAccount(place, name)
      console.log(`created ${name}, which is ${disabled ? 'disabled' : 'enabled'}`)
    }),
  )
}

async function remove(name: string, { config: file, yes }: Options): Promise<void> {
  if (!yes) return describeLoss(name, file)
  await withStores(
    file,
    asChange(async (place) => {
      const { config } = place
      const users = (await findAccount(place, name, config.authUrl === undefined))?.users ?? []
      const start = await requestAccountDeletion(place, name, { hasUsers: users.length > 0 })
      if (start === 'unknown') throw new Error(`no such account: ${name}`)
      if (start === 'enabled') {
        throw new Error(`the account ${name} is enabled: run \`berth account disable ${name}\` first`)
      }
      const { rows } = await continueAccountDeletions(place, nameBlockedMs(config))
      const isGone = (await place.metadata.accounts.find(name)) === undefined
      console.log(
        `deleted ${name}: ${rows} rows${isGone ? '' : '; its name is free when its last credentials have expired'}`,
      )
    }),
  )
}

async function describeLoss(name: string, file: string | undefined): Promise<void> {
  await withStores(file, async (place) => {
    const report = await findAccount(place, name, place.config.authUrl === undefined)
    if (report === undefined) throw new Error(`no such account: ${name}`)
    const { repositories, manifests, tags, blobs, blobBytes } = report.content
    const users = report.users === undefined ? '' : `, ${report.users.length} users with their keys`
    throw new Error(
      `this would delete ${name}, which is ${report.state}: ${repositories} repositories, ${manifests} manifests, ${tags} tags, ${blobs} blobs (${formatBytes(blobBytes)})${users}. Add --yes to delete it`,
    )
  })
}
