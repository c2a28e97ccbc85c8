// Replicas that get the requests in turn, under a load of pushes and with both of them collecting, are killed one after the other: what
// was acknowledged stays, and every retry succeeds.
import { describe, expect } from 'bun:test'
import { seededRandom } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { startReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { auditShared, objectName } from '../support/replicas/shared-stores-audit.ts'
import { askS3 } from '../support/s3/s3-server.ts'

const kills = Number(process.env['KILLS'] ?? 3)
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1_000_000))
const clients = 4
const settings = { BERTH_GARBAGE__EVERY: '300ms', BERTH_GARBAGE__QUARANTINE: '0s' }
const replicas = useRunning(() => startReplicas({ settings }), sharedStoresNeed)
/** Each request goes to the next replica. A request that fails is sent to the other. */
const balancer = {
  get url() {
    turn += 1
    return (turn % 2 === 0 ? replicas.a : replicas.b).url
  },
}
const pushers = new PushingClients()
let turn = 0

async function killInTurn(): Promise<void> {
  const random = seededRandom(seed)
  for (let kill = 0; kill < kills; kill += 1) {
    const replica = replicas.all[kill % replicas.all.length]
    await Bun.sleep(100 + Math.floor(random() * 600))
    await replica?.kill()
    await Bun.sleep(Math.floor(random() * 200))
    await replica?.start()
  }
}

describe(`kill -9 of one of two replicas under a push load, ${kills} times, seed ${seed}`, () => {
  testNeeding(
    sharedStoresNeed,
    'loses nothing that was acknowledged, and every push succeeds in the end',
    async () => {
      let isOver = false
      const pushing = Array.from({ length: clients }, (_, client) => pushers.pushUntil(balancer, client, () => isOver))
      await killInTurn()
      isOver = true
      await Promise.all(pushing)

      const losses = [...(await pushers.findLosses(replicas.a)), ...(await pushers.findLosses(replicas.b))]
      const { faults, strays, blobs, manifests } = await auditShared(replicas.stores)
      const { images, requests, retries, restartedUploads, failures } = pushers.figures
      console.log(
        `killed replicas: ${kills} kills, ${images} images in ${requests} requests, ${[...retries].join(' ')} repeated (${restartedUploads.length} uploads started again), ` +
          `${failures.length} failed; ${pushers.size.blobs} blobs acknowledged, ${losses.length} lost; audit of ` +
          `${blobs} blobs and ${manifests} manifests: ${faults.length} faults, ${strays.length} strays; seed ${seed}`,
      )
      expect({ seed, losses, faults, failures }).toEqual({ seed, losses: [], faults: [], failures: [] })
      expect(images).toBeGreaterThan(kills)
    },
    60_000 + kills * 5_000,
  )

  testNeeding(
    sharedStoresNeed,
    'control: an object that is taken from the bucket is reported by ledger and audit',
    async () => {
      const objects = await replicas.stores.ask<{ digest: string; storage_key: string }>(
        'SELECT digest, storage_key FROM blobs WHERE content IS NULL',
      )
      const acknowledged: ReadonlySet<string> = new Set(pushers.digests)
      const { digest, storage_key } = objects.find((object) => acknowledged.has(object.digest)) ?? {}
      if (digest === undefined || storage_key === undefined) throw new Error('no object was acknowledged')
      const target = objectName(replicas.stores, storage_key)
      expect((await askS3(replicas.stores.s3, { method: 'DELETE', target })).status).toBe(204)

      const losses = await pushers.findLosses(replicas.b)
      expect(losses).toHaveLength(1)
      expect(losses[0]).toContain(digest)
      expect((await auditShared(replicas.stores)).faults).toEqual([`the object of ${digest} is missing (404)`])
    },
  )
})
