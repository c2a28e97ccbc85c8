// Small blobs in the rows of PostgreSQL, pushed and pulled at two replicas at once.
import { describe, expect } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  openSession,
  patch,
  pushBlob,
} from '../support/clients/registry-client.ts'
import { startReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { auditShared, listKeys } from '../support/replicas/shared-stores-audit.ts'

const replicas = useRunning(() => startReplicas(), sharedStoresNeed)
const repository = 'inline/app'
let seed = 0

function fresh(sizeBytes = 16_384): Uint8Array<ArrayBuffer> {
  seed += 1
  return generatedBytes(sizeBytes, seed)
}

const prove = (name: string, body: () => Promise<void>) => testNeeding(sharedStoresNeed, name, body)

describe('inline blobs of two replicas', () => {
  prove('can be pulled from the other as soon as they are pushed, and need no object', async () => {
    for (const sizeBytes of [0, 1, 16_384]) {
      const digest = await pushBlob(replicas.a, repository, fresh(sizeBytes))
      expect(await checkBlob(replicas.b, repository, digest)).toBe('whole')
    }
    expect((await listKeys(replicas.stores)).filter((key) => key !== 'owner')).toEqual([])
  })

  prove('that are uploaded forty times at once are stored once', async () => {
    const bytes = fresh()
    const digest = digestOf(bytes)
    await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const target = at % 2 === 0 ? replicas.a : replicas.b
        if (at % 4 < 2) return pushBlob(target, repository, bytes)
        return expectStatus(201, finish(target, await openSession(target, repository), digest, bytes))
      }),
    )

    expect(await replicas.stores.ask(`SELECT 1 FROM blobs WHERE digest = '${digest}'`)).toHaveLength(1)
    expect(await auditShared(replicas.stores)).toMatchObject({ faults: [], strays: [] })
  })

  prove('can be sent to both in turns, also beyond the limit', async () => {
    const bytes = fresh(20_000)
    const session = await openSession(replicas.a, repository)
    for (const [at, target] of [replicas.a, replicas.b, replicas.a, replicas.b].entries()) {
      await expectStatus(202, patch(target, session, bytes.subarray(at * 5_000, (at + 1) * 5_000), at * 5_000))
    }
    await expectStatus(201, finish(replicas.a, session, digestOf(bytes)))

    expect(await checkBlob(replicas.b, repository, digestOf(bytes))).toBe('whole')
  })

  prove('are gone at both when they are deleted, also from the memory of a replica that has served them', async () => {
    const digest = await pushBlob(replicas.a, repository, fresh())
    for (const replica of replicas.all) expect(await checkBlob(replica, repository, digest)).toBe('whole')
    await expectStatus(202, ask(replicas.a, 'DELETE', `/v2/${repository}/blobs/${digest}`))

    for (const replica of replicas.all) expect(await checkBlob(replica, repository, digest)).toBe('status 404')
  })
})
