// The result of a request for each state of the identity service and each age of the credential, as a table; and the
// function that tries one row of it.

import type { Carrier } from '../support/api/carriers.ts'
import type { StubState } from '../support/identity/identity-stub.ts'
import { type OutageReply, type OutageWorld, outageCarriers, type Person } from './outage-world.ts'

export const operations = ['pull', 'push', 'delete', 'operate'] as const
type Operation = (typeof operations)[number]

/** How long ago the service called the credential good. */
export const memories = { cold: undefined, warm: 30_000, stale: 120_000, 'too old': 360_000 } as const
export type Memory = keyof typeof memories

export type Outcome = 'done' | 401 | 503

// The first answer of `flapping` is a 503, its second is good.
export const states = [
  'down',
  'slow',
  '401',
  '403',
  '429',
  '500',
  '503',
  'html',
  'truncated',
  'no roles',
  'huge',
  'redirect',
  'flapping',
] as const satisfies readonly StubState[]
type State = (typeof states)[number]

/** Only 401 and 403 say that the credential is bad. Every other state says nothing, and then a known caller may pull and push. */
function outcomeOf(state: State, memory: Memory, operation: Operation): Outcome {
  if (memory === 'warm') return 'done'
  if (state === '401' || state === '403') return 401
  return memory === 'stale' && (operation === 'pull' || operation === 'push') ? 'done' : 503
}

export interface Row {
  readonly state: State
  readonly memory: Memory
  readonly carrier: Carrier
  readonly operation: Operation
  readonly expected: Outcome
}

export const rows: readonly Row[] = states.flatMap((state) =>
  (Object.keys(memories) as Memory[]).flatMap((memory) =>
    outageCarriers.flatMap((carrier) =>
      operations.map((operation) => {
        const expected = outcomeOf(state, memory, operation)
        return { state, memory, carrier, operation, expected }
      }),
    ),
  ),
)

const hourMs = 3_600_000
/** The request of an operation, and its status when it is done. */
const requests: Readonly<Record<Operation, (tag: string) => readonly [method: string, path: string, good: number]>> = {
  pull: () => ['GET', '/v2/app/tags/list', 200],
  push: () => ['POST', '/v2/app/blobs/uploads/', 202],
  delete: (tag) => ['DELETE', `/v2/app/manifests/${tag}`, 202],
  operate: () => ['POST', '/api/2023-12-28/disable', 200],
}

/** Tries one row; gives what is not as it has to be. */
export async function tryRow(
  world: OutageWorld,
  { state, memory, carrier, operation, expected }: Row,
): Promise<string[]> {
  // Of what was before, nothing is remembered.
  world.clock.now += hourMs
  await world.stub.set('good')
  const account = operation === 'operate' ? `account-${world.clock.now}` : 'acme'
  const person = world.addPerson(account)
  const keeper = world.addPerson()
  const tag = `tag-${world.clock.now}`
  await world.pushTag(keeper, operation === 'delete' ? tag : 'latest')
  const age = memories[memory]
  if (age !== undefined) {
    await world.askWell(person, 'GET', '/v2/', carrier)
    world.clock.now += age
  }

  await world.stub.set(state)
  world.stub.calls.length = 0
  const [method, path, good] = requests[operation](tag)
  const reply = await world.ask(person, method, path, carrier)
  const faults = [...findFaults(reply, good, expected, path), ...findStrayQuestions(world, person, carrier, memory)]
  if (state === 'flapping' && expected !== 'done') {
    const second = await world.ask(person, method, path, carrier)
    faults.push(...findFaults(second, good, 'done', path).map((fault) => `then ${fault}`))
    return faults
  }

  await world.stub.set('good')
  const isDone = await findTraces(world, operation, { account, tag, keeper })
  if (isDone !== undefined && isDone !== (expected === 'done')) faults.push(isDone ? 'it was done' : 'it was not done')
  return faults
}

function findFaults({ status, headers, text }: OutageReply, good: number, expected: Outcome, path: string): string[] {
  const wanted = expected === 'done' ? good : expected
  const faults = status === wanted ? [] : [`answered ${status}, not ${wanted}`]
  const isAsked = headers.has('www-authenticate')
  if (isAsked !== (expected === 401)) faults.push(isAsked ? 'asked for credentials' : 'asked for no credentials')
  if ((headers.get('retry-after') === '5') !== (expected === 503)) faults.push('said otherwise when to come again')
  if (expected !== 'done' && path.startsWith('/v2/')) {
    const code = expected === 401 ? 'UNAUTHORIZED' : 'UNAVAILABLE'
    if (!text.includes(`"code":"${code}"`)) faults.push(`gave another code than ${code}: ${text}`)
  }
  const told = text + JSON.stringify([...headers])
  return told.includes('hush-hush') ? [...faults, 'gave the credential back'] : faults
}

/** The service gets the credential in the right header only, and gets no request while it is remembered. */
function findStrayQuestions({ stub }: OutageWorld, { secret }: Person, carrier: Carrier, memory: Memory): string[] {
  const header = carrier.kind === 'apiKey' ? 'x-api-key' : 'authorization'
  const strays = stub.calls.filter((call) => call.carrier !== header || call.secret !== secret)
  const faults = [...strays, ...stub.strayCalls].map(({ path, ...call }) => `asked ${path} with ${call.carrier}`)
  if (memory === 'warm' && stub.calls.length > 0) faults.push('asked about a caller that is remembered')
  return faults
}

/** Tells whether the operation had an effect, where that can be seen: a refusal must not come too late. */
async function findTraces(
  world: OutageWorld,
  operation: Operation,
  { account, tag, keeper }: { readonly account: string; readonly tag: string; readonly keeper: Person },
): Promise<boolean | undefined> {
  if (operation === 'operate') return world.isDisabled(account)
  if (operation !== 'delete') return undefined
  const { text } = await world.askWell(keeper, 'GET', '/v2/app/tags/list')
  return !(JSON.parse(text) as { tags: string[] }).tags.includes(tag)
}
