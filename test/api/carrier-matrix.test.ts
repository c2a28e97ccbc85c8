// spec.md 5, "Accepted carriers of credentials": each of the six, and a user's name with key or password, in each state, at every operation of the route table.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Credential, Identity, Principal } from '../../src/ports/identity.ts'
import { CarrierWorld } from '../support/api/carrier-world.ts'
import { makeSecrets, type Secrets } from '../support/api/carriers.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { type MovedServer, startMoved } from '../support/server/moved-server.ts'
import { type Cell, cells, findFaults, StoreWatch } from './carrier-matrix.ts'

const settings = {
  BERTH_AUTH__FAILURE_BURST: '1000000',
  BERTH_LIMITS__KEYS_PER_USER: '100000',
  BERTH_LIMITS__UPLOADS_PER_REPOSITORY: '100000',
  BERTH_LIMITS__UPLOADS_PER_PRINCIPAL: '100000',
}

const patienceMs = 30_000

/** CI tries all cells (MATRIX=all). Here it is every seventh: each carrier in each state, and each operation in some. */
const tried = process.env['MATRIX'] === 'all' ? cells : cells.filter((_, index) => index % 7 === 0)

describe.each(['basic', 'bearer'] as const)('with the %s challenge', (challenge) => {
  let server: MovedServer
  let world: CarrierWorld
  let secrets: Secrets
  let watch: StoreWatch

  beforeAll(async () => {
    server = await startMoved({ settings: { ...settings, BERTH_AUTH__CHALLENGE: challenge } })
    secrets = await makeSecrets(server)
    world = await CarrierWorld.make(server, challenge)
    watch = new StoreWatch(server.dataDir)
  })
  afterAll(async () => {
    watch.close()
    await server.stop()
  })

  test.each(tried.map((cell) => [cell.operation.title, cell.carrier.name, cell.state, cell] as const))(
    '%s with %s that is %s',
    async (_operation, _carrier, _state, cell) => {
      expect(await findFaults(world, watch, secrets, cell)).toEqual([])
    },
  )
})

describe('the matrix finds out', () => {
  /** The cells of one mount that are at fault where this answers for the identity service. */
  async function faultyCells(authenticate: Identity['authenticate']): Promise<Cell[]> {
    let isStrange = false
    const server = await startMoved({
      settings,
      change: ({ identity }) => {
        // What a cell needs is made with this key, by the real one.
        const isReal = ({ secret }: Credential) => !isStrange || secret === testApiKey
        return {
          identity: {
            findCached: (credential) => (isReal(credential) ? identity.findCached(credential) : undefined),
            findByHeader: () => undefined,
            authenticate: (credential) =>
              isReal(credential) ? identity.authenticate(credential) : authenticate(credential),
            isUnguessable: (credential) => identity.isUnguessable(credential),
            clear: () => identity.clear(),
          },
        }
      },
    })
    const secrets = await makeSecrets(server)
    const world = await CarrierWorld.make(server, 'basic')
    const watch = new StoreWatch(server.dataDir)
    isStrange = true
    const faulty: Cell[] = []
    for (const cell of tried.filter(isShown)) {
      if ((await findFaults(world, watch, secrets, cell)).length > 0) faulty.push(cell)
    }
    watch.close()
    await server.stop()
    return faulty
  }

  const isShown = ({ operation }: Cell) => operation.mount !== '/v2'
  const guarded = tried.filter((cell) => isShown(cell) && cell.operation.route.access !== 'anyone')
  const titlesOf = (some: readonly Cell[]) =>
    some.map(({ operation, carrier, state }) => `${operation.title} ${carrier.name} ${state}`)

  test(
    'an identity service that takes everything',
    async () => {
      const root: Principal = {
        account: 'default',
        subject: 'root',
        roles: [],
        grants: [{ rights: new Set(['pull', 'push', 'delete', 'operate']) }],
        fingerprint: '',
      }
      const faulty = await faultyCells(async () => root)
      const opened = guarded.filter(
        // A token that says itself that it is over is not asked about.
        ({ state, carrier }) => state === 'bad' || (state === 'expired' && carrier.kind !== 'token'),
      )

      expect(opened.length).toBeGreaterThan(tried.length / 10)
      expect(titlesOf(faulty.filter(({ state }) => state !== 'good'))).toEqual(titlesOf(opened))
    },
    patienceMs,
  )

  test(
    'one that takes nothing',
    async () => {
      const faulty = await faultyCells(async () => undefined)
      const shut = guarded.filter(({ state }) => state === 'good')

      expect(shut.length).toBeGreaterThan(tried.length / 15)
      expect(titlesOf(faulty)).toEqual(titlesOf(shut))
    },
    patienceMs,
  )
})
