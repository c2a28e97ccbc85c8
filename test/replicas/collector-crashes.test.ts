// A collector that is killed at each of its steps, one that is slow, and two that do the same: another replica goes on.
import { describe, expect } from 'bun:test'
import {
  ask,
  checkBlob,
  expectStatus,
  manifestOfBlobs,
  pushBlob,
  putManifest,
} from '../support/clients/registry-client.ts'
import { type Step, useGatedPair } from '../support/replicas/gated-replica.ts'
import { checkAtBoth } from '../support/replicas/replicas.ts'
import { growBlob } from '../support/replicas/shared-stores.ts'
import { listKeys } from '../support/replicas/shared-stores-audit.ts'

let serial = 0
const { pair, race } = useGatedPair()

async function oldBlob() {
  serial += 1
  const repository = `crashes/${serial}`
  const bytes = new TextEncoder().encode(`layer ${serial}`)
  const digest = await pushBlob(pair.b, repository, bytes)
  await growBlob(pair.stores, digest)
  return { repository, bytes, digest }
}

/** The bytes that the collector was to take are gone, and with them all that told of them. */
async function nothingIsLeft(): Promise<void> {
  expect(await listKeys(pair.stores)).toEqual([])
  expect(await pair.stores.ask('SELECT 1 FROM trash UNION ALL SELECT 1 FROM blobs')).toEqual([])
}

const collectUpTo = (step: Step) => pair.a.holdDuring(step, () => pair.a.collect())

/** After what the test did, nothing is to be held any more. */
async function forgetHolds(): Promise<void> {
  await pair.stores.ask('UPDATE trash SET taken_until = 0')
}

describe('I10: a collector is killed, and another begins', () => {
  const steps: readonly (readonly [string, readonly Step[]])[] = [
    ['behind its lock', ['before garbage.isInUse']],
    ['behind its look', ['after garbage.isInUse']],
    ['before it commits', ['after garbage.moveToTrash']],
    // The first transaction of a collection is another one, so this door is shut when the blob's is under way.
    ['behind its commit', ['before garbage.moveToTrash', 'after transaction']],
    ['before it removes the bytes', ['before store.remove']],
    ['before it records that the bytes are removed', ['before garbage.removeTrashed']],
  ]
  for (const [where, path] of steps) {
    race(`${where}: the blob is collected once, and nothing is left`, async () => {
      const { repository, digest } = await oldBlob()
      let before = () => {}
      for (const step of path) {
        const hold = await pair.a.hold(step)
        if (step === path[0]) pair.a.collect().catch(() => undefined)
        before()
        await hold.reached
        before = hold.letGo
      }

      await pair.killA()
      // The dead collector holds what it has taken. Another one takes it when that hold ends.
      if (path[0] === 'before garbage.removeTrashed') expect((await pair.b.collect()).purged).toBe(0)
      await forgetHolds()
      expect((await pair.b.collect()).purged).toBe(1)

      expect(await checkBlob(pair.a, repository, digest)).toMatch(/^status 404$/)
      await nothingIsLeft()
    })
  }
})

race('I11: bytes are removed by two at once, because the first was slow: neither fails', async () => {
  await oldBlob()
  const goOn = await collectUpTo('before store.remove')

  await forgetHolds()
  expect((await pair.b.collect()).purged).toBe(1)

  expect((await goOn()).purged).toBe(1)
  await nothingIsLeft()
})

race('I12: the removal is slow, and the same blob is pushed again and pulled meanwhile: it stays', async () => {
  const { repository, bytes, digest } = await oldBlob()
  const goOn = await collectUpTo('before store.remove')

  await pushBlob(pair.b, repository, bytes)
  await expectStatus(201, putManifest(pair.b, repository, 'latest', manifestOfBlobs(bytes, [bytes])))
  expect(await checkBlob(pair.b, repository, digest)).toBe('whole')

  expect((await goOn()).purged).toBe(1)
  expect(await checkAtBoth(pair, repository, digest)).toBe('whole')
})

describe('I32: an empty repository is removed during a push to it', () => {
  const bytes = new TextEncoder().encode('pushed')

  async function emptyRepository(): Promise<string> {
    serial += 1
    const repository = `crashes/empty-${serial}`
    const digest = await pushBlob(pair.b, repository, new TextEncoder().encode(`empty ${serial}`))
    await expectStatus(202, ask(pair.b, 'DELETE', `/v2/${repository}/blobs/${digest}`))
    await pair.stores.ask(`UPDATE repositories SET created_at = 0 WHERE name = '${repository}'`)
    await pair.stores.ask('DELETE FROM uploads WHERE done_digest IS NOT NULL')
    return repository
  }

  race('it is being removed: the push waits, and is in a new one, from which can be mounted', async () => {
    const repository = await emptyRepository()
    const goOn = await collectUpTo('after garbage.removeEmptyRepositories')

    const pushing = pushBlob(pair.b, repository, bytes)
    await pair.somebodyWaits()

    expect((await goOn()).repositories).toBe(1)
    const digest = await pushing
    expect(await checkBlob(pair.a, repository, digest)).toBe('whole')
    const mount = `/v2/crashes/target/blobs/uploads/?mount=${digest}&from=${encodeURIComponent(repository)}`
    expect((await ask(pair.a, 'POST', mount)).status).toBe(201)
  })

  race('a push to it has begun: the collector skips it', async () => {
    const repository = await emptyRepository()
    const goOn = await pair.b.holdDuring('after repositories.ensure', () => pushBlob(pair.b, repository, bytes))

    expect((await pair.a.collect()).repositories).toBe(0)

    expect(await checkBlob(pair.a, repository, await goOn())).toBe('whole')
  })
})
