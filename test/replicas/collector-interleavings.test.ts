// The collector on one replica against pushes, mounts and heads on another, step by step: each test is one interleaving of
// two processes, forced by holding one of them, and the other is seen to wait or to pass by.
import { describe, expect } from 'bun:test'
import {
  ask,
  checkBlob,
  expectStatus,
  manifestOfBlobs,
  pushBlob,
  putManifest,
} from '../support/clients/registry-client.ts'
import { useGatedPair } from '../support/replicas/gated-replica.ts'
import { growBlob } from '../support/replicas/shared-stores.ts'

const config = new TextEncoder().encode('{}')
let serial = 0
const { pair, race } = useGatedPair()

/** A blob that nothing needs any more, in a repository of its own. */
async function oldBlob() {
  serial += 1
  const repository = `races/${serial}`
  const bytes = new TextEncoder().encode(`layer ${serial}`)
  const digest = await pushBlob(pair.b, repository, bytes)
  await growBlob(pair.stores, digest)
  const path = `/v2/${repository}/blobs/${digest}`
  return {
    repository,
    bytes,
    digest,
    grow: () => growBlob(pair.stores, digest),
    head: () => ask(pair.b, 'HEAD', path),
    remove: () => ask(pair.a, 'DELETE', path),
    upload: () => pushBlob(pair.b, repository, bytes),
    async push(tag: string) {
      await pushBlob(pair.b, repository, config)
      return putManifest(pair.b, repository, tag, manifestOfBlobs(config, [bytes], tag))
    },
    mount: (target: string) =>
      ask(pair.b, 'POST', `/v2/${target}/blobs/uploads/?mount=${digest}&from=${encodeURIComponent(repository)}`),
    /** As both replicas serve it. */
    async state(where = repository) {
      const [atA, atB] = [await checkBlob(pair.a, where, digest), await checkBlob(pair.b, where, digest)]
      return atA === atB ? atB : `${atA} at one, ${atB} at the other`
    },
  }
}

/** A collection that stands at a step of its one blob. */
async function collectUpTo(
  step: 'before garbage.isInUse' | 'before garbage.moveToTrash' | 'after garbage.moveToTrash',
) {
  const hold = await pair.a.hold(step)
  const collecting = pair.a.collect()
  await hold.reached
  return async () => {
    hold.letGo()
    return collecting
  }
}

describe('a manifest is pushed on one replica while the other collects', () => {
  race('I01: the collector has locked a blob that lives: the push waits, and both are right', async () => {
    const blob = await oldBlob()
    await expectStatus(201, blob.push('first'))
    await blob.grow()
    const goOn = await collectUpTo('before garbage.isInUse')

    const pushing = blob.push('second')
    await pair.somebodyWaits()

    expect((await goOn()).blobs).toBe(0)
    expect((await pushing).status).toBe(201)
    expect(await blob.state()).toBe('whole')
  })

  race(
    'I02: the collector takes the blob: the push waits, is told what is missing, and succeeds when repeated',
    async () => {
      const blob = await oldBlob()
      const goOn = await collectUpTo('before garbage.isInUse')

      const pushing = blob.push('latest')
      await pair.somebodyWaits()

      expect((await goOn()).blobs).toBe(1)
      const refused = await pushing
      expect([refused.status, await refused.json()]).toMatchObject([
        400,
        { errors: [{ code: 'MANIFEST_BLOB_UNKNOWN', detail: { digest: blob.digest } }] },
      ])
      await blob.upload()
      expect((await blob.push('latest')).status).toBe(201)
      await blob.grow()
      expect((await pair.a.collect()).blobs).toBe(0)
      expect(await blob.state()).toBe('whole')
    },
  )

  race('I03: the push holds its blobs: the collector skips them and does not wait', async () => {
    const blob = await oldBlob()
    await pushBlob(pair.b, blob.repository, config)
    const hold = await pair.b.hold('before manifests.save')
    const pushing = blob.push('latest')
    await hold.reached

    expect((await pair.a.collect()).blobs).toBe(0)
    hold.letGo()

    expect((await pushing).status).toBe(201)
    await blob.grow()
    expect((await pair.a.collect()).blobs).toBe(0)
    expect(await blob.state()).toBe('whole')
  })
})

describe('I05: HEAD on one replica, the collector on the other', () => {
  race('HEAD comes first: it renews the lease, and the blob is kept', async () => {
    const blob = await oldBlob()
    const hold = await pair.b.hold('after blobs.lockByDigests')
    const asked = blob.head()
    await hold.reached

    expect((await pair.a.collect()).blobs).toBe(0)
    hold.letGo()

    expect((await asked).status).toBe(200)
    expect((await pair.a.collect()).blobs).toBe(0)
    expect(await blob.state()).toBe('whole')
  })

  race('HEAD comes between lock and look: it waits, and is told that the blob is gone', async () => {
    const blob = await oldBlob()
    const goOn = await collectUpTo('before garbage.isInUse')

    const asked = blob.head()
    await pair.somebodyWaits()

    expect((await goOn()).blobs).toBe(1)
    expect((await asked).status).toBe(404)
    expect((await blob.head()).status).toBe(404)
  })
})

describe('I06: a mount on one replica, the collector or a deletion on the other', () => {
  race('the mount holds the blob: the collector passes it by, and the target has it', async () => {
    const blob = await oldBlob()
    const hold = await pair.b.hold('after blobs.lockByDigests')
    const mounting = blob.mount(`${blob.repository}/target`)
    await hold.reached

    expect((await pair.a.collect()).blobs).toBe(0)
    hold.letGo()

    expect((await mounting).status).toBe(201)
    await pair.a.collect()
    expect(await blob.state(`${blob.repository}/target`)).toBe('whole')
  })

  race('the collector is about to take the blob: the mount waits, and becomes an upload', async () => {
    const blob = await oldBlob()
    const goOn = await collectUpTo('before garbage.moveToTrash')

    const mounting = blob.mount(`${blob.repository}/target`)
    await pair.somebodyWaits()

    expect((await goOn()).blobs).toBe(1)
    expect((await mounting).status).toBe(202)
    expect(await blob.state(`${blob.repository}/target`)).toBe('status 404')
  })

  race('the source is being deleted: the mount waits, and becomes an upload', async () => {
    const blob = await oldBlob()
    const hold = await pair.a.hold('after blobs.unlink')
    const deleting = blob.remove()
    await hold.reached

    const mounting = blob.mount(`${blob.repository}/target`)
    await pair.somebodyWaits()
    hold.letGo()

    expect([(await deleting).status, (await mounting).status]).toEqual([202, 202])
  })

  race('the mount is first: the deletion of the source waits, and the target keeps the blob', async () => {
    const blob = await oldBlob()
    const hold = await pair.b.hold('after blobs.lockByDigests')
    const mounting = blob.mount(`${blob.repository}/target`)
    await hold.reached

    const deleting = blob.remove()
    await pair.somebodyWaits()
    hold.letGo()

    expect([(await mounting).status, (await deleting).status]).toEqual([201, 202])
    expect((await pair.a.collect()).blobs).toBe(0)
    expect([await blob.state(), await blob.state(`${blob.repository}/target`)]).toEqual(['status 404', 'whole'])
  })
})

describe('I07: the same bytes are uploaded on one replica while the other collects them', () => {
  race('the upload holds the blob: the collector passes it by', async () => {
    const blob = await oldBlob()
    const hold = await pair.b.hold('after blobs.findLocked')
    const uploading = blob.upload()
    await hold.reached

    expect((await pair.a.collect()).blobs).toBe(0)
    hold.letGo()
    await uploading

    expect((await pair.a.collect()).blobs).toBe(0)
    expect(await blob.state()).toBe('whole')
  })

  race(
    'I09: the collector has deleted and not committed: the upload waits, and the purge of the old bytes leaves its own',
    async () => {
      const blob = await oldBlob()
      const goOn = await collectUpTo('after garbage.moveToTrash')

      const uploading = blob.upload()
      await pair.somebodyWaits()
      const { blobs, purged } = await goOn()
      await uploading

      expect([blobs, purged]).toEqual([1, 1])
      expect(await blob.state()).toBe('whole')
    },
  )

  race('the collector is killed before it commits: the upload goes on with the blob that stands', async () => {
    const blob = await oldBlob()
    const hold = await pair.a.hold('after garbage.moveToTrash')
    pair.a.collect().catch(() => undefined)
    await hold.reached

    const uploading = blob.upload()
    await pair.somebodyWaits()
    await pair.killA()
    await uploading

    expect(await blob.state()).toBe('whole')
    expect(await pair.b.collect()).toMatchObject({ blobs: 0, purged: 1 })
    expect(await blob.state()).toBe('whole')
  })

  race(
    'I08: forty uploads of it on both at once: one is the blob, the others are trash, all are acknowledged',
    async () => {
      serial += 1
      const bytes = new TextEncoder().encode(`at once ${serial}`)
      const uploads = Array.from({ length: 40 }, (_, at) =>
        pushBlob(at % 2 ? pair.a : pair.b, `races/${serial}`, bytes),
      )
      const [digest = ''] = await Promise.all(uploads)

      expect(await pair.stores.ask(`SELECT 1 FROM blobs WHERE digest = '${digest}'`)).toHaveLength(1)
      expect(await pair.stores.ask('SELECT 1 FROM trash')).toHaveLength(39)
      const purges = await Promise.all([pair.a.collect(), pair.b.collect()])
      expect(purges.reduce((sum, { purged }) => sum + purged, 0)).toBe(39)
      expect(await checkBlob(pair.a, `races/${serial}`, digest)).toBe('whole')
    },
  )
})
