import { Argument, type Command } from 'commander'
import { parseRepositoryName } from '../oci/names.ts'
import { parseImmutableTagPolicy, removeImmutableTags, setImmutableTags } from '../registry/immutable-tag-rules.ts'
import { findPolicy } from '../registry/policies.ts'
import { type DecisionPosition, listDecisions, removeRetention, setRetention } from '../registry/retention.ts'
import { parseRetentionPolicy } from '../registry/retention-rules.ts'
import { type RetentionRun, runRetention } from '../registry/retention-run.ts'
import { printJson, printTable, showTime, tell } from './printing.ts'
import { accountOption, asChange, configOption, getAccount, type Workplace, withStores } from './stores.ts'

type Kind = 'immutable-tags' | 'retention'

interface Options {
  readonly config?: string
  readonly account?: string
  readonly json?: true
  readonly file?: string
  readonly repository?: string
  readonly all?: true
}

/** The changes of commands are recorded under this name. */
const operator = { subject: 'operator' }

const decisionsAtOnce = 1_000

export function addPolicyCommand(program: Command): void {
  const policy = program
    .command('policy')
    .summary('show, set and apply the policies of an account')
    .description('Show, set and apply the policies of an account. The server may be running.')
  const add = (text: string) =>
    policy
      .command(text)
      .option(...configOption)
      .option(...accountOption)
  const kind = () => new Argument('<kind>', 'immutable-tags or retention').choices(['immutable-tags', 'retention'])
  add('show').addArgument(kind()).description('print the policy as JSON').action(show)
  add('set')
    .addArgument(kind())
    .argument('<file>', 'a file with the JSON of the policy; `-`: standard input')
    .description('replace the policy')
    .action(set)
  add('remove').addArgument(kind()).description('remove the policy').action(remove)
  add('plan')
    .option('--file <file>', 'the JSON of another retention policy, instead of the stored one')
    .option('--repository <repository>', 'only this repository')
    .option('--all', 'also the tags that are kept')
    .option('--json', 'print JSON, one line for each tag')
    .description('list what the retention policy would remove now, and why; nothing is removed')
    .action(plan)
  add('run').description('apply the retention policy now').action(run)
}

async function show(kind: Kind, options: Options): Promise<void> {
  await withStores(options.config, async (place) => {
    const { id } = await getAccount(place, options.account)
    const stored = await findPolicy(place, id, kind)
    if (stored === undefined) return tell('the account has no such policy')
    printJson(JSON.parse(stored.body))
    tell(`changed ${showTime(stored.changedAt, '')} by ${stored.changedBy}`)
  })
}

async function set(kind: Kind, file: string, options: Options): Promise<void> {
  const json = await readJsonFile(file)
  await withStores(
    options.config,
    asChange(async (place) => {
      const { id } = await getAccount(place, options.account)
      if (kind === 'immutable-tags') return setImmutableTags(place, id, parseImmutableTagPolicy(json), operator)
      const policy = parseRetentionPolicy(json)
      return setRetention(place, id, { json: json as object, policy }, operator)
    }),
  )
}

async function remove(kind: Kind, options: Options): Promise<void> {
  await withStores(
    options.config,
    asChange(async (place) => {
      const { id } = await getAccount(place, options.account)
      await (kind === 'immutable-tags' ? removeImmutableTags(place, id) : removeRetention(place, id))
    }),
  )
}

async function plan({ config, account: name, file, repository, all, json }: Options): Promise<void> {
  const given = file === undefined ? undefined : parseRetentionPolicy(await readJsonFile(file))
  const only = repository === undefined ? undefined : parseRepositoryName(repository)
  await withStores(config, async (place) => {
    const account = await getAccount(place, name)
    const policy = given ?? (await getStored(place, account.id))
    const rows: string[][] = []
    const counts = { keep: 0, remove: 0 }
    for (let after: DecisionPosition | undefined; ; ) {
      const page = await listDecisions(place, account, policy, { after, limit: decisionsAtOnce, only })
      for (const { repository, state, isKept, rule, reason } of page.decisions) {
        const action = isKept ? 'keep' : 'remove'
        counts[action] += 1
        if (isKept && !all) continue
        if (json)
          console.log(JSON.stringify({ repository, tag: state.tag, digest: state.digest, action, rule, reason }))
        else rows.push([action, `${repository}:${state.tag}`, showTime(state.pushedAt, ''), rule ?? '-', reason])
      }
      after = page.next
      if (after === undefined) break
    }
    if (!json) printTable(['ACTION', 'TAG', 'PUSHED', 'RULE', 'REASON'], rows)
    tell(`the policy removes ${counts.remove} tags and keeps ${counts.keep}`)
  })
}

async function getStored(place: Workplace, accountId: number) {
  const stored = await findPolicy(place, accountId, 'retention')
  if (stored === undefined) throw new Error('the account has no retention policy: set one, or name a file with --file')
  return parseRetentionPolicy(JSON.parse(stored.body))
}

async function run(options: Options): Promise<void> {
  await withStores(
    options.config,
    asChange(async (place) => {
      const { id, state } = await getAccount(place, options.account)
      if (state !== 'enabled') throw new Error(`the account is ${state}, so nothing is removed`)
      await getStored(place, id)
      const { removedTags, removedManifests }: RetentionRun = await runRetention(
        { metadata: place.metadata, settings: place.config },
        id,
        operator,
      )
      console.log(`removed ${removedTags} tags and ${removedManifests} untagged manifests`)
    }),
  )
}

async function readJsonFile(file: string): Promise<unknown> {
  const text = await (file === '-' ? Bun.stdin : Bun.file(file)).text()
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${file} is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}
