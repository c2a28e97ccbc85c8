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
import { type Step, useGatedPair } from '../support/replicas/gated-replica.ts'
import { checkAtBoth } from '../support/replicas/replicas.ts'
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
    bytes,
    digest,
    target: `${repository}/target`,
    grow: () => growBlob(pair.stores, digest),
    remove: () => ask(pair.a, 'DELETE', path),
    upload: () =>
      ask(pair.b, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digest}`, { body: new Uint8Array(bytes) }),
    head: () => ask(pair.b, 'HEAD', path),
    async push(tag = 'latest') {
      await pushBlob(pair.b, repository, config)
      return putManifest(pair.b, repository, tag, manifestOfBlobs(config, [bytes], tag))
    },
    mount: () =>
      ask(
        pair.b,
        'POST',
        `/v2/${repository}/target/blobs/uploads/?mount=${digest}&from=${encodeURIComponent(repository)}`,
      ),
    state: (where = repository) => checkAtBoth(pair, where, digest),
  }
}

type Blob = Awaited<ReturnType<typeof oldBlob>>
type Request = 'push' | 'head' | 'mount' | 'upload'

type CollectorStep = 'before garbage.isInUse' | 'before garbage.moveToTrash' | 'after garbage.moveToTrash'
const collectUpTo = (step: CollectorStep) => pair.a.holdDuring(step, () => pair.a.collect())

describe('a request holds the blob, and the collector on the other replica passes it by', () => {
  const requests: readonly (readonly [title: string, request: Request, step: Step, status: number])[] = [
    ['I03: a push', 'push', 'before manifests.save', 201],
    ['I05: HEAD, which renews the lease', 'head', 'after blobs.lockByDigests', 200],
    ['I06: a mount', 'mount', 'after blobs.lockByDigests', 201],
    ['I07: an upload of the same bytes', 'upload', 'after blobs.findLocked', 201],
  ]
  for (const [title, request, step, status] of requests) {
    race(title, async () => {
      const blob = await oldBlob()
      const goOn = await pair.b.holdDuring(step, () => blob[request]())

      expect((await pair.a.collect()).blobs).toBe(0)
      expect((await goOn()).status).toBe(status)

      expect((await pair.a.collect()).blobs).toBe(0)
      expect(await blob.state(request === 'mount' ? blob.target : undefined)).toBe('whole')
    })
  }
})

describe('the collector takes the blob, and a request on the other replica waits', () => {
  race('I02: a push is told what is missing, and succeeds when repeated', async () => {
    const blob = await oldBlob()
    const refused = await collectDuring(blob, 'push', 'before garbage.isInUse')

    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { errors: [{ code: 'MANIFEST_BLOB_UNKNOWN', detail: { digest: blob.digest } }] },
    ])
    await expectStatus(201, blob.upload())
    await expectStatus(201, blob.push())
    await blob.grow()
    expect((await pair.a.collect()).blobs).toBe(0)
    expect(await blob.state()).toBe('whole')
  })

  race('I05: HEAD is told that it is gone', async () => {
    const blob = await oldBlob()
    expect((await collectDuring(blob, 'head', 'before garbage.isInUse')).status).toBe(404)
    expect((await blob.head()).status).toBe(404)
  })

  race('I06: a mount becomes an upload', async () => {
    const blob = await oldBlob()
    expect((await collectDuring(blob, 'mount', 'before garbage.moveToTrash')).status).toBe(202)
    expect(await blob.state(blob.target)).toBe('status 404')
  })

  race('I09: an upload of the same bytes keeps its own when the old ones are purged', async () => {
    const blob = await oldBlob()
    expect((await collectDuring(blob, 'upload', 'after garbage.moveToTrash')).status).toBe(201)
    expect(await blob.state()).toBe('whole')
  })

  async function collectDuring(blob: Blob, request: Request, step: CollectorStep) {
    const goOn = await collectUpTo(step)
    const answer = blob[request]()
    await pair.somebodyWaits()
    const { blobs, purged } = await goOn()
    expect([blobs, purged > 0]).toEqual([1, true])
    return answer
  }
})

race('I01: the collector has locked a blob that is used: a push waits, and the blob stays', async () => {
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

describe('I06: a mount on one replica, a deletion of the source on the other', () => {
  race('the source is being deleted: the mount waits, and becomes an upload', async () => {
    const blob = await oldBlob()
    const goOn = await pair.a.holdDuring('after blobs.unlink', blob.remove)

    const mounting = blob.mount()
    await pair.somebodyWaits()

    expect([(await goOn()).status, (await mounting).status]).toEqual([202, 202])
  })

  race('the mount is first: the deletion waits, and the target keeps the blob', async () => {
    const blob = await oldBlob()
    const goOn = await pair.b.holdDuring('after blobs.lockByDigests', blob.mount)

    const deleting = blob.remove()
    await pair.somebodyWaits()

    expect([(await goOn()).status, (await deleting).status]).toEqual([201, 202])
    expect((await pair.a.collect()).blobs).toBe(0)
    expect([await blob.state(), await blob.state(blob.target)]).toEqual(['status 404', 'whole'])
  })
})

describe('the same bytes are uploaded', () => {
  race(
    'I07: while the collector is killed before it commits: the upload goes on with the blob that is there',
    async () => {
      const blob = await oldBlob()
      await collectUpTo('after garbage.moveToTrash')

      const uploading = blob.upload()
      await pair.somebodyWaits()
      await pair.killA()

      expect((await uploading).status).toBe(201)
      expect(await blob.state()).toBe('whole')
      expect(await pair.b.collect()).toMatchObject({ blobs: 0, purged: 1 })
      expect(await blob.state()).toBe('whole')
    },
  )

  race('I08: forty times on both at once: one is the blob, the others are trash, all are acknowledged', async () => {
    serial += 1
    const bytes = new TextEncoder().encode(`at once ${serial}`)
    const uploads = Array.from({ length: 40 }, (_, at) => pushBlob(at % 2 ? pair.a : pair.b, `races/${serial}`, bytes))
    const [digest = ''] = await Promise.all(uploads)

    expect(await pair.stores.ask(`SELECT 1 FROM blobs WHERE digest = '${digest}'`)).toHaveLength(1)
    expect(await pair.stores.ask('SELECT 1 FROM trash')).toHaveLength(39)
    const purges = await Promise.all([pair.a.collect(), pair.b.collect()])
    expect(purges.reduce((sum, { purged }) => sum + purged, 0)).toBe(39)
    expect(await checkBlob(pair.a, `races/${serial}`, digest)).toBe('whole')
  })
})
