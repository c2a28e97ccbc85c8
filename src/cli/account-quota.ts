import { type Command, InvalidArgumentError } from 'commander'
import { formatBytes, parseByteCount } from '../lib/quantities.ts'
import { setQuota, usedOf } from '../registry/quotas.ts'
import { parseAccount } from './arguments.ts'
import { printJson, printTable } from './printing.ts'
import { asChange, configOption, type Workplace, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly json?: true
  readonly bytes?: Limit
  readonly repositories?: Limit
  readonly tags?: Limit
}

type Limit = number | 'none'

/** Adds `quota` to the command `account`. */
export function addQuotaCommand(account: Command): void {
  account
    .command('quota')
    .argument('<account>', 'name of the account', parseAccount)
    .description(
      'show or change how much an account may store; without options it shows the limits. A limit below the present use stops only pushes. A running server obeys from the next request on.',
    )
    .option(...configOption)
    .option('--bytes <size>', 'stored bytes, such as 50GiB, or `none`', parseBytes)
    .option('--repositories <number>', 'repositories with a manifest, or `none`', parseCount)
    .option('--tags <number>', 'tags in all repositories, or `none`', parseCount)
    .option('--json', 'print JSON')
    .action(run)
}

async function run(name: string, options: Options): Promise<void> {
  const { bytes, repositories, tags } = options
  const isChange = bytes !== undefined || repositories !== undefined || tags !== undefined
  const work = isChange ? asChange((place) => change(place, name, options)) : () => Promise.resolve()
  await withStores(options.config, async (place) => {
    await work(place)
    await show(place, name, options)
  })
}

async function change(place: Workplace, name: string, options: Options): Promise<void> {
  const { quota } = await getAccount(place, name)
  const limitOf = (of: 'bytes' | 'repositories' | 'tags') => {
    const given = options[of]
    return given === undefined ? quota?.[of] : given === 'none' ? undefined : given
  }
  const limits = { bytes: limitOf('bytes'), repositories: limitOf('repositories'), tags: limitOf('tags') }
  await setQuota(place, name, limits)
}

async function show(place: Workplace, name: string, { json }: Options): Promise<void> {
  const { id, quota } = await getAccount(place, name)
  const used = usedOf(await place.metadata.usage.findOfAccount(id))
  const { bytes, repositories, tags } = quota ?? {}
  if (json) {
    const limits = { bytes: bytes ?? null, repositories: repositories ?? null, tags: tags ?? null }
    return printJson({ limits, used })
  }
  const shown = (limit: number | undefined) => (limit === undefined ? 'none' : String(limit))
  printTable(
    ['', 'USED', 'LIMIT'],
    [
      ['bytes', formatBytes(used.bytes), bytes === undefined ? 'none' : formatBytes(bytes)],
      ['repositories', String(used.repositories), shown(repositories)],
      ['tags', String(used.tags), shown(tags)],
    ],
  )
}

async function getAccount({ metadata }: Workplace, name: string) {
  const account = await metadata.accounts.find(name)
  if (account === undefined) throw new Error(`no such account, or it was never enabled: ${name}`)
  return account
}

function parseBytes(given: string): Limit {
  if (given === 'none') return given
  const bytes = parseByteCount(given)
  if (bytes !== undefined) return bytes
  throw new InvalidArgumentError('It must be a size such as 500MiB or 50GiB, or `none`.')
}

function parseCount(given: string): Limit {
  if (given === 'none') return given
  if (/^\d{1,12}$/.test(given)) return Number(given)
  throw new InvalidArgumentError('It must be a whole number, or `none`.')
}
