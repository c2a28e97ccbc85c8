// An acknowledged push survives kill -9: a real process under load, killed at random moments and started again.
import { afterAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import type { Digest } from '../../src/oci/digest.ts'
import { seededRandom } from '../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { auditStores, countRows, fileOfBlob } from '../support/stores/store-audit.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'

const kills = Number(process.env['KILLS'] ?? 8)
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1_000_000))
const clients = 4
const temporaryFolder = useTemporaryFolders('crash')
const random = seededRandom(seed)
const pushers = new PushingClients({ triesMax: 1, layerBytesMax: 30_000, seed })

// The collector runs all the time and purges at once, so that it is killed in the middle of its work as well.
const settings = { BERTH_GARBAGE__EVERY: '200ms', BERTH_GARBAGE__QUARANTINE: '0s' }
const quiet = { BERTH_GARBAGE__EVERY: '0s' }

async function pushUntilKilled(dataDir: string): Promise<void> {
  const berth = await startBerth({ dataDir, settings })
  let isOver = false
  const pushing = Array.from({ length: clients }, (_, client) => pushers.pushUntil(berth, client, () => isOver))
  await Bun.sleep(30 + Math.floor(random() * 700))
  isOver = true
  await berth.kill()
  await Promise.all(pushing)
}

describe(`kill -9 under a push load, ${kills} times, seed ${seed}`, () => {
  const dataDir = temporaryFolder()

  afterAll(() => {
    const { blobs, manifests, tags } = pushers.size
    console.log(
      `crash: ${kills} kills, ${blobs} blobs, ${manifests} manifests, ${tags} tags acknowledged, seed ${seed}`,
    )
  })

  test(
    'loses nothing that was acknowledged, and leaves the stores sound',
    async () => {
      const faults: string[] = []
      for (let round = 1; round <= kills; round += 1) {
        await pushUntilKilled(dataDir)
        faults.push(...(await auditStores(dataDir)).map((fault) => `after kill ${round}: ${fault}`))
      }

      const berth = await startBerth({ dataDir, settings: quiet })
      const losses = await pushers.findLosses(berth)
      expect(await berth.stop()).toBe(0)

      expect({ seed, faults }).toEqual({ seed, faults: [] })
      expect({ seed, losses }).toEqual({ seed, losses: [] })
      expect(pushers.size.manifests).toBeGreaterThan(kills)
      expect(pushers.figures.failures).toEqual([])
    },
    60_000 + kills * 5_000,
  )

  test.each([
    ['a blob file that is removed', 'IS NULL', (digest: Digest) => rmSync(fileOfBlob(dataDir, digest))],
    [
      'an inline blob with other bytes',
      'IS NOT NULL',
      (digest: Digest) =>
        damageMetadata(dataDir, `UPDATE blobs SET content = zeroblob(size_bytes) WHERE digest = '${digest}'`),
    ],
  ])('would be noticed: %s is reported by the ledger and by the audit', async (_, place, damage) => {
    const faults = (await auditStores(dataDir)).length
    const digest = pushers.digests.find(
      (one) => countRows(dataDir, 'blobs', `digest = '${one}' AND content ${place}`) === 1,
    )
    if (digest === undefined) throw new Error('no blob of this kind was acknowledged')
    damage(digest)

    const berth = await startBerth({ dataDir, settings: quiet })
    const losses = await pushers.findLosses(berth)
    await berth.stop()

    expect(await auditStores(dataDir)).toHaveLength(faults + 1)
    expect(losses.length).toBeGreaterThan(0)
  })
})
