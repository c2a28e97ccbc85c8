import { type Command, Option } from 'commander'
import { formatTime } from '../lib/quantities.ts'
import { listAudit } from '../registry/audit-list.ts'
import { parseAccount, parseEnd, parsePast } from './arguments.ts'
import { printTable, tell } from './printing.ts'
import { configOption, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly account?: string
  readonly actor?: string
  readonly action?: string
  readonly repository?: string
  readonly outcome?: 'done' | 'refused'
  readonly since?: number
  readonly until?: number
  readonly output: 'table' | 'jsonl'
}

type Entry = Awaited<ReturnType<typeof listAudit>>['items'][number]

const entriesAtOnce = 500
const tableRowsMax = 1_000

export function addAuditCommand(program: Command): void {
  program
    .command('audit')
    .summary('show who did what')
    .description(
      `Show changes, logins and refused requests of all accounts, the newest first: a table of at most ${tableRowsMax} entries, or all entries as JSON lines.`,
    )
    .option(...configOption)
    .option('--account <account>', 'only entries of this account', parseAccount)
    .option('--actor <subject>', 'only entries of this caller; `operator` for commands')
    .option('--action <action>', 'only this action, such as login or tag.moved')
    .option('--repository <repository>', 'only changes and requests of this repository')
    .addOption(new Option('--outcome <outcome>', 'only entries with this outcome').choices(['done', 'refused']))
    .option('--since <time>', 'only entries from this time on, such as 2030-01-31T12:00:00Z or 24h (ago)', parsePast)
    .option('--until <time>', 'only entries before this time, such as 2030-01-31T12:00:00Z', parseEnd)
    .addOption(new Option('--output <form>', 'the form of the output').choices(['table', 'jsonl']).default('table'))
    .action(list)
}

async function list({ config, account, output, ...filter }: Options): Promise<void> {
  await withStores(config, async (place) => {
    const rows: Entry[] = []
    let after: Awaited<ReturnType<typeof listAudit>>['next']
    do {
      const page = await listAudit(place, account, filter, { after, limit: entriesAtOnce })
      after = page.next
      if (output === 'jsonl') await printLines(page.items)
      else rows.push(...page.items)
    } while (after !== undefined && rows.length < tableRowsMax)
    if (output === 'table') printEntries(rows.slice(0, tableRowsMax))
    if (output === 'table' && after !== undefined) {
      tell(`there are more than ${tableRowsMax} entries; --output jsonl prints all of them`)
    }
  })
}

/** Waits until the reader has taken the lines, so that an export of any length needs little memory. */
async function printLines(entries: readonly Entry[]): Promise<void> {
  const lines = entries.map(({ id: _, happenedAt, keyName, ...entry }) =>
    JSON.stringify({ at: formatTime(happenedAt), ...entry, key: keyName }),
  )
  if (lines.length === 0) return
  const isTaken = process.stdout.write(`${lines.join('\n')}\n`)
  if (!isTaken) await new Promise<void>((resolve) => process.stdout.once('drain', () => resolve()))
}

function printEntries(entries: readonly Entry[]): void {
  printTable(
    ['TIME', 'ACCOUNT', 'ACTOR', 'KEY', 'ADDRESS', 'ACTION', 'OUTCOME', 'TIMES', 'TARGET'],
    entries.map((entry) => [
      formatTime(entry.happenedAt) ?? '',
      entry.account ?? '-',
      entry.actor ?? '-',
      entry.keyName ?? entry.credential ?? '-',
      entry.address ?? '-',
      entry.action,
      entry.reason ?? entry.outcome,
      String(entry.count),
      entry.target ?? '-',
    ]),
  )
}
