// Two replicas that collect all the time, an operator's `berth gc` beside them, and clients that push: what is garbage is
// collected once, and what is not stays.
import { expect } from 'bun:test'
import { testNeeding } from '../support/basics/needs.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { pushBlob } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { startReplicas } from '../support/replicas/replicas.ts'
import { growBlob, sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { auditShared } from '../support/replicas/shared-stores-audit.ts'
import { runBerth } from '../support/server/berth-command.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const orphans = 60

/** What the log lines say that was collected, together. */
function sumOf(output: string, field: 'blobs' | 'purged'): number {
  const lines = output.split('\n').filter((line) => line.includes('"msg":"garbage collected"'))
  return lines.reduce((sum, line) => sum + Number(new RegExp(`"${field}":(\\d+)`).exec(line)?.[1] ?? 0), 0)
}

testNeeding(
  sharedStoresNeed,
  'under a load of pushes each unused blob is collected once, and nothing else is',
  async () => {
    const quick = { BERTH_GARBAGE__EVERY: '150ms', BERTH_GARBAGE__QUARANTINE: '0s' }
    const { a, b, stores, stop } = await startReplicas({ settings: quick })
    const pushers = new PushingClients({ layerBytesMax: 5_000 })
    let isOver = false
    const pushing = [0, 1].map((client) => pushers.pushUntil(a, client, () => isOver))
    let collectedByHand = 0
    let handRuns = 0
    const gc = async () => {
      while (!isOver && handRuns < 2) {
        const { exitCode, stdout, stderr } = await runBerth(['gc'], { ...stores.settings, ...quick })
        if (exitCode !== 0) throw new Error(stderr)
        handRuns += 1
        collectedByHand += Number(/(\d+) blobs?/.exec(stdout)?.[1] ?? 0)
      }
    }
    const byHand = gc()
    try {
      for (let at = 0; at < orphans; at += 1) {
        const digest = await pushBlob(at % 2 ? a : b, `orphans/${at % 7}`, encode(`orphan ${at}`))
        if (at % 3 === 0) await growBlob(stores, digest)
      }
      await stores.ask(
        `UPDATE blob_links SET leased_at = 0 WHERE repository_id IN (SELECT id FROM repositories WHERE name LIKE 'orphans/%')`,
      )
      await stores.ask(
        `UPDATE blob_queue SET queued_at = 0 WHERE blob_id IN (SELECT l.blob_id FROM blob_links l
         JOIN repositories r ON r.id = l.repository_id WHERE r.name LIKE 'orphans/%')`,
      )
      const left = `SELECT 1 FROM blob_links WHERE leased_at = 0 UNION ALL SELECT 1 FROM trash`
      await until('all of it is gone', async () => (await stores.ask(left)).length === 0)
      isOver = true
      await Promise.all([...pushing, byHand])

      const losses = await pushers.findLosses(b)
      const { faults, strays } = await auditShared(stores)
      const [atA, atB] = [await a.stop().then(() => a.output()), await b.stop().then(() => b.output())]
      console.log(
        `garbage: ${orphans} orphans, of which one replica collected ${sumOf(atA, 'blobs')}, the other ` +
          `${sumOf(atB, 'blobs')}, and ${handRuns} runs of berth gc ${collectedByHand}; ${pushers.figures.images} images ` +
          `pushed meanwhile, ${losses.length} losses`,
      )
      expect(sumOf(atA, 'blobs') + sumOf(atB, 'blobs') + collectedByHand).toBe(orphans)
      expect({ losses, faults, strays, failures: pushers.figures.failures }).toEqual({
        losses: [],
        faults: [],
        strays: [],
        failures: [],
      })
      expect(pushers.figures.images).toBeGreaterThan(0)
    } finally {
      isOver = true
      await stop()
    }
  },
)
