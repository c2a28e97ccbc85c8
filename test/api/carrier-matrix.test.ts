// spec.md 5, "Accepted carriers of credentials": each of the six, and a user's name with key or password, in each state, at every operation of the route table.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { CarrierWorld } from '../support/api/carrier-world.ts'
import { makeSecrets, type Secrets } from '../support/api/carriers.ts'
import { type MovedServer, startMoved } from '../support/server/moved-server.ts'
import { cells, findFaults, StoreWatch } from './carrier-matrix.ts'

const settings = {
  BERTH_AUTH__FAILURE_BURST: '1000000',
  BERTH_LIMITS__KEYS_PER_USER: '100000',
  BERTH_LIMITS__UPLOADS_PER_REPOSITORY: '100000',
  BERTH_LIMITS__UPLOADS_PER_PRINCIPAL: '100000',
}

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
