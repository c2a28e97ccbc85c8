// The result of a request for each state of the identity service and each age of the credential, as a table; and the
// function that tries one row of it.
import type { StubState } from '../support/identity/identity-stub.ts'
import { type Carrier, carriers, headerAfter, type OutageReply, type OutageWorld, type Person } from './outage-world.ts'

export const operations = ['pull', 'push', 'delete', 'operate'] as const
type Operation = (typeof operations)[number]

/** How long ago the service called the credential good. */
export const memories = { cold: undefined, warm: 30_000, stale: 120_000, 'too old': 360_000 } as const
export type Memory = keyof typeof memories

export type Outcome = 'done' | 401 | 503

type Expectation = Readonly<Record<Memory, Readonly<Record<Operation, Outcome>>>>

const nobodyCanTell: Expectation = {
  cold: { pull: 503, push: 503, delete: 503, operate: 503 },
  warm: { pull: 'done', push: 'done', delete: 'done', operate: 'done' },
  stale: { pull: 'done', push: 'done', delete: 503, operate: 503 },
  'too old': { pull: 503, push: 503, delete: 503, operate: 503 },
}

const nobodyIsThere: Expectation = {
  cold: { pull: 401, push: 401, delete: 401, operate: 401 },
  warm: { pull: 'done', push: 'done', delete: 'done', operate: 'done' },
  stale: { pull: 401, push: 401, delete: 401, operate: 401 },
  'too old': { pull: 401, push: 401, delete: 401, operate: 401 },
}

const expectations = {
  down: nobodyCanTell,
  slow: nobodyCanTell,
  '401': nobodyIsThere,
  '403': nobodyIsThere,
  '429': nobodyCanTell,
  '500': nobodyCanTell,
  '503': nobodyCanTell,
  html: nobodyCanTell,
  truncated: nobodyCanTell,
  'no roles': nobodyCanTell,
  huge: nobodyCanTell,
  redirect: nobodyCanTell,
  // Its first answer is a 503, its second is good.
  flapping: nobodyCanTell,
} satisfies Partial<Record<StubState, Expectation>>

export type State = keyof typeof expectations

export interface Row {
  readonly state: State
  readonly memory: Memory
  readonly carrier: Carrier
  readonly operation: Operation
  readonly expected: Outcome
}

export const states = Object.keys(expectations) as State[]

export const rows: readonly Row[] = states.flatMap((state) =>
  (Object.keys(memories) as Memory[]).flatMap((memory) =>
    (Object.keys(carriers) as Carrier[]).flatMap((carrier) =>
      operations.map((operation) => ({
        state,
        memory,
        carrier,
        operation,
        expected: expectations[state][memory][operation],
      })),
    ),
  ),
)

const hourMs = 3_600_000
const doneStatus: Readonly<Record<Operation, number>> = { pull: 200, push: 202, delete: 202, operate: 200 }

function requestFor(operation: Operation, tag: string): readonly [string, string] {
  switch (operation) {
    case 'pull':
      return ['GET', '/v2/app/tags/list']
    case 'push':
      return ['POST', '/v2/app/blobs/uploads/']
    case 'delete':
      return ['DELETE', `/v2/app/manifests/${tag}`]
    case 'operate':
      return ['POST', '/api/2023-12-28/disable']
  }
}

/** Tries one row; gives what is not as it has to be. */
export async function tryRow(
  world: OutageWorld,
  { state, memory, carrier, operation, expected }: Row,
): Promise<string[]> {
  // Of what was before, nothing is remembered.
  world.now += hourMs
  await world.stub.set('good')
  const account = operation === 'operate' ? `account-${world.now}` : 'acme'
  const person = world.addPerson(account)
  const keeper = world.addPerson()
  const tag = `tag-${world.now}`
  await world.pushTag(keeper, operation === 'delete' ? tag : 'latest')
  const age = memories[memory]
  if (age !== undefined) {
    await world.askWell(person, carrier, 'GET', '/v2/')
    world.now += age
  }

  await world.stub.set(state)
  world.stub.calls.length = 0
  const [method, path] = requestFor(operation, tag)
  const reply = await world.ask(person, carrier, method, path)
  const faults = [
    ...findFaults(reply, operation, expected, path),
    ...findStrayQuestions(world, person, carrier, memory),
  ]
  if (state === 'flapping' && expected !== 'done') {
    const second = await world.ask(person, carrier, method, path)
    faults.push(...findFaults(second, operation, 'done', path).map((fault) => `then ${fault}`))
    return faults
  }

  await world.stub.set('good')
  const isDone = await findTraces(world, operation, { account, tag, keeper })
  if (isDone !== undefined && isDone !== (expected === 'done')) faults.push(isDone ? 'it was done' : 'it was not done')
  return faults
}

function findFaults(
  { status, headers, text }: OutageReply,
  operation: Operation,
  expected: Outcome,
  path: string,
): string[] {
  const wanted = expected === 'done' ? doneStatus[operation] : expected
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
  const header = headerAfter(carrier)
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
  const { text } = await world.askWell(keeper, 'X-API-KEY', 'GET', '/v2/app/tags/list')
  return !(JSON.parse(text) as { tags: string[] }).tags.includes(tag)
}
