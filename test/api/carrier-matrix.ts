// One cell of the matrix: an operation, a carrier, and what the carrier holds. Asks, and tells all that is wrong.
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { api } from '../support/api/api-server.ts'
import type { CarrierWorld, PreparedRequest } from '../support/api/carrier-world.ts'
import { type Carrier, carriers, carryIn, type Secrets, type State, states } from '../support/api/carriers.ts'
import { type Operation, operations } from '../support/api/route-examples.ts'
import { listFiles } from '../support/stores/store-audit.ts'

export interface Cell {
  readonly operation: Operation
  readonly carrier: Carrier
  readonly state: State
}

/** All of them. */
export const cells: readonly Cell[] = operations.flatMap((operation) =>
  carriers.flatMap((carrier) => states.map((state) => ({ operation, carrier, state }))),
)

/** Tells whether the stores were written to. */
export class StoreWatch {
  readonly #dataDir: string
  readonly #database: Database

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
  }

  /** Another text after any commit of another connection, and after any change to the files. */
  look(): string {
    const version = this.#database.query<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version
    return JSON.stringify([version, listFiles(this.#dataDir).sort()])
  }

  close(): void {
    this.#database.close()
  }
}

const basicChallenge = 'Basic realm="Berth", charset="UTF-8"'
/** One challenge, by its grammar: a second one would begin with a scheme, which has no equals sign. */
const oneBearerChallenge = /^Bearer realm="([^"]+)",service="Berth"(?:,scope="[^"]+")?(,error="invalid_token")?$/
const wordsFor = {
  absent: 'authentication required',
  bad: 'the credentials are wrong, malformed, repeated or no longer valid',
  expired: 'the credentials are wrong, malformed, repeated or no longer valid',
} as const

/** All that is wrong with the answer in this cell. */
export async function findFaults(
  world: CarrierWorld,
  watch: StoreWatch,
  secrets: Secrets,
  cell: Cell,
): Promise<string[]> {
  const { operation, carrier, state } = cell
  const request = await world.prepare(operation)
  const { headers = {}, query } = carryIn(carrier, state, secrets)
  const joint = request.path.includes('?') ? '&' : '?'
  const before = watch.look()
  const answer = await world.server.ask(operation.method, request.path + (query === undefined ? '' : joint + query), {
    headers: { ...request.headers, ...headers },
    ...(request.body === undefined ? {} : { body: request.body }),
  })
  const text = await answer.text()
  const hasChanged = watch.look() !== before
  if (operation.route.operationId === 'disableService') await world.must(200, 'POST', `${api}/enable`)
  const isRefused = state !== 'good' && isGuarded(operation, world)
  return [
    ...(isRefused ? refusalFaults(world, cell, answer, text) : successFaults(request, answer)),
    ...(isRefused && hasChanged ? ['something was written'] : []),
    ...(operation.method === 'HEAD' && text !== '' ? ['there is a body'] : []),
    ...(carrier.place === 'query' && state !== 'absent' ? secrecyFaults(answer) : []),
  ]
}

/** Whether credentials decide: everywhere but at the routes for anyone; a token is issued only to a known caller. */
function isGuarded({ route }: Operation, { challenge }: CarrierWorld): boolean {
  if (route.pattern === '/_token') return challenge === 'bearer'
  return route.access !== 'anyone'
}

function successFaults({ status }: PreparedRequest, { status: actual, headers }: Response): string[] {
  const challenge = headers.get('www-authenticate')
  return [
    ...(actual === status ? [] : [`the status is ${actual} and not ${status}`]),
    ...(challenge === null ? [] : [`there is the challenge ${challenge}`]),
  ]
}

function refusalFaults(world: CarrierWorld, cell: Cell, { status, headers }: Response, text: string): string[] {
  const { operation, state } = cell
  if (state === 'good') throw new Error('good credentials are not refused')
  const challenge = headers.get('www-authenticate') ?? ''
  const wanted = wordsFor[state]
  const body = operation.method === 'HEAD' ? undefined : JSON.parse(text || '{}')
  return [
    ...(status === 401 ? [] : [`the status is ${status} and not 401`]),
    ...(isChallenge(world, cell, challenge) ? [] : [`the challenge is ${challenge}`]),
    ...(body === undefined || body.msg === wanted ? [] : [`the message is ${body.msg}`]),
    ...(body?.errors === undefined || body.errors[0]?.code === 'UNAUTHORIZED' ? [] : [`the errors are ${text}`]),
    ...(body === undefined || (body.errors !== undefined) === (operation.mount !== '') ? [] : ['another form']),
  ]
}

function isChallenge(
  { server, challenge: mode }: CarrierWorld,
  { operation, state }: Cell,
  challenge: string,
): boolean {
  const { mount, route } = operation
  if (mode === 'basic' || mount === '' || route.access === 'anyone') return challenge === basicChallenge
  const [, realm, fault] = oneBearerChallenge.exec(challenge) ?? []
  return realm === `${server.url}${mount}/_token` && (fault !== undefined) === (state !== 'absent')
}

function secrecyFaults({ headers }: Response): string[] {
  const found = [headers.get('cache-control'), headers.get('referrer-policy')].join(' ')
  return found === 'no-store no-referrer' ? [] : [`an answer to an address with a key in it says ${found}`]
}
