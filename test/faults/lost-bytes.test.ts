// A stored object is lost, or cut short. The registry notices when it is read, and the next push of the blob heals it.
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  openSession,
  patch,
  pushBlob,
  pushImage,
  putManifest,
  type Target,
} from '../support/clients/registry-client.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { startReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { testS3Need } from '../support/s3/test-s3.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { type Damageable, damageableStores, type StoreKind } from './lost-objects.ts'

const temporaryFolder = useTemporaryFolders('lost-bytes')
const [app, other] = ['lost/app', 'lost/other']
const lostLine = 'the stored bytes of a blob are missing or damaged; the next push of the blob replaces them'
const lostUploadLine = 'the stored bytes of an unfinished upload are missing or damaged'

/** An inline blob has no object that can be lost. */
const objectsOnly = { BERTH_STORAGE__INLINE_BYTES: '0' }

/** Longer than what an S3 store reads before it answers, and shorter. */
const layers = [generatedBytes(700_000, 1), generatedBytes(1_000, 2)]

const waysToPush: Readonly<Record<string, (target: Target, bytes: Uint8Array) => Promise<unknown>>> = {
  'one POST': (target, bytes) => pushBlob(target, app, bytes),
  'POST and PUT': async (target, bytes) =>
    expectStatus(201, finish(target, await openSession(target, app), digestOf(bytes), bytes)),
  'POST, PATCH and PUT': async (target, bytes) => {
    const session = await openSession(target, app)
    await expectStatus(202, patch(target, session, bytes))
    await expectStatus(201, finish(target, session, digestOf(bytes)))
  },
}

/** What clients see of the blob in both repositories that link it, and of a push that needs it. */
async function describeBlob(target: Target, bytes: Uint8Array, manifest: Uint8Array): Promise<readonly unknown[]> {
  const digest = digestOf(bytes)
  const head = async (name: string) => (await ask(target, 'HEAD', `/v2/${name}/blobs/${digest}`)).status
  const status = async (asked: Promise<Response>) => {
    const answer = await asked
    const { errors = [] } = ((await answer.json().catch(() => null)) ?? {}) as { errors?: { code: string }[] }
    return [answer.status, ...new Set(errors.map(({ code }) => code))].join(' ')
  }
  const mount = `/v2/lost/third/blobs/uploads/?mount=${digest}`
  return [
    await checkBlob(target, app, digest),
    await checkBlob(target, other, digest),
    await head(app),
    await head(other),
    await status(putManifest(target, app, 'again', manifest)),
    await status(ask(target, 'POST', `${mount}&from=${app}`)),
    await status(ask(target, 'POST', mount)),
  ]
}

const sound = ['whole', 'whole', 200, 200, '201', '201', '201']
const lost = ['status 404', 'status 404', 404, 404, '400 MANIFEST_BLOB_UNKNOWN', '202', '202']

const linesWith = (output: string, words: string) => output.split('\n').filter((line) => line.includes(words))

function countLostLines(output: string, digest: string): number {
  const lines = linesWith(output, lostLine).filter((line) => line.includes(digest))
  for (const line of lines) {
    expect(JSON.parse(line)).toMatchObject({ level: 'error', account: expect.any(String), repository: app, digest })
  }
  return lines.length
}

async function pushLostImage(target: Target): Promise<Uint8Array> {
  const { bytes } = await pushImage(target, app, 'latest', layers)
  for (const layer of layers) {
    const mount = `/v2/${other}/blobs/uploads/?mount=${digestOf(layer)}&from=${app}`
    await expectStatus(201, ask(target, 'POST', mount))
  }
  return bytes
}

const kinds: readonly (readonly [StoreKind, Need])[] = [
  [
    { metadata: 'SQLite', blobs: 'files' },
    { isMet: true, reason: '' },
  ],
  [{ metadata: 'SQLite', blobs: 'S3' }, testS3Need()],
  [{ metadata: 'PostgreSQL', blobs: 'files' }, postgres],
  [{ metadata: 'PostgreSQL', blobs: 'S3' }, sharedStoresNeed],
]

/** CI tries all pairs of stores (MATRIX=all). Each store is in one of these. */
const tried = process.env['MATRIX'] === 'all' ? kinds : [kinds[0], kinds[3]].filter((kind) => kind !== undefined)

for (const [kind, need] of tried) {
  describe(`${kind.blobs} and ${kind.metadata}`, () => {
    let stores: Damageable
    let berth: BerthProcess
    let manifest: Uint8Array

    beforeAll(async () => {
      if (!need.isMet) return
      const dataDir = temporaryFolder()
      stores = await damageableStores(kind, dataDir)
      berth = await startBerth({
        dataDir,
        settings: { ...stores.settings, ...objectsOnly, BERTH_GARBAGE__EVERY: '0s' },
      })
      manifest = await pushLostImage(berth)
    }, 60_000)

    afterAll(async () => {
      if (!need.isMet) return
      await berth.stop()
      await stores.close()
    })

    for (const harm of ['removed', 'cut short'] as const) {
      for (const isRead of [false, true]) {
        const sentence = isRead ? 'is absent for clients, and any push' : 'and that has not been read: any push'
        testNeeding(need, `an object that is ${harm} ${sentence} replaces it`, async () => {
          for (const layer of layers) {
            const digest = digestOf(layer)
            for (const push of Object.values(waysToPush)) {
              const before = countLostLines(berth.output(), digest)
              expect(await describeBlob(berth, layer, manifest)).toEqual(sound)
              const key = await stores.keyOf(digest)
              await (harm === 'removed' ? stores.remove(key) : stores.cut(key))

              // The control, too: what is compared after the push differs before it.
              if (isRead) expect(await describeBlob(berth, layer, manifest)).toEqual(lost)
              await push(berth, layer)

              expect(await describeBlob(berth, layer, manifest)).toEqual(sound)
              expect(countLostLines(berth.output(), digest)).toBe(before + 1)
              expect(await stores.listTrash()).toContain(key)

              // A push does not replace bytes that are there.
              const known = await stores.keyOf(digest)
              expect(known).not.toBe(key)
              await push(berth, layer)
              expect(await stores.keyOf(digest)).toBe(known)
            }
          }
        })
      }
    }

    testNeeding(need, 'an object that comes back is served again without a push', async () => {
      for (const layer of layers) {
        const putBack = await stores.remove(await stores.keyOf(digestOf(layer)))
        expect(await describeBlob(berth, layer, manifest)).toEqual(lost)

        await putBack()

        expect(await describeBlob(berth, layer, manifest)).toEqual(sound)
      }
    })

    testNeeding(need, 'an upload whose bytes are lost has ended, for every request', async () => {
      const session = await openSession(berth, app)
      await expectStatus(202, patch(berth, session, generatedBytes(1_000, 3)))
      for (const key of await stores.keysOfUploads()) await stores.remove(key)
      const countLines = () => linesWith(berth.output(), lostUploadLine).length
      const before = countLines()

      const again = await patch(berth, session, generatedBytes(1_000, 4))
      expect([again.status, await again.json()]).toMatchObject([404, { errors: [{ code: 'BLOB_UPLOAD_UNKNOWN' }] }])
      expect((await ask(berth, 'GET', session)).status).toBe(404)
      expect((await finish(berth, session, digestOf('anything'))).status).toBe(404)
      expect(await stores.keysOfUploads()).toEqual([])
      expect(countLines()).toBe(before + 1)
      expect(JSON.parse(linesWith(berth.output(), lostUploadLine).at(-1) ?? '')).toMatchObject({
        level: 'error',
        account: expect.any(String),
        repository: app,
        upload: session.split('/').at(-1),
        storageKey: expect.any(String),
      })
    })

    testNeeding(need, 'an unavailable store is answered with 503, and marks no blob as lost', async () => {
      for (const layer of layers) {
        const digest = digestOf(layer)
        const before = countLostLines(berth.output(), digest)
        const comeBack = await stores.hide(await stores.keyOf(digest))
        expect(await checkBlob(berth, app, digest)).toBe('status 503')
        expect((await ask(berth, 'HEAD', `/v2/${app}/blobs/${digest}`)).status).toBe(200)
        await comeBack()

        expect(await describeBlob(berth, layer, manifest)).toEqual(sound)
        expect(countLostLines(berth.output(), digest)).toBe(before)
      }
    })
  })
}

describe('two replicas', () => {
  const replicas = useRunning(() => startReplicas({ settings: objectsOnly }), sharedStoresNeed)
  let stores: Damageable

  beforeAll(async () => {
    if (!sharedStoresNeed.isMet) return
    stores = await damageableStores({ shared: replicas.stores })
  }, 60_000)

  testNeeding(
    sharedStoresNeed,
    'both see at once what one of them has found, and many pushes at once heal it',
    async () => {
      const { a, b } = replicas
      const manifest = await pushLostImage(a)
      const both = (act: (target: Target) => Promise<unknown>) =>
        Promise.all(Array.from({ length: 8 }, (_, n) => act(n % 2 === 0 ? a : b)))
      for (const layer of layers) {
        const digest = digestOf(layer)
        await stores.remove(await stores.keyOf(digest))

        expect(new Set(await both((target) => checkBlob(target, app, digest)))).toEqual(new Set(['status 404']))
        expect(await describeBlob(b, layer, manifest)).toEqual(lost)
        expect(await describeBlob(a, layer, manifest)).toEqual(lost)
        expect(countLostLines(a.output() + b.output(), digest)).toBe(1)
        await both((target) => pushBlob(target, app, layer))

        expect(await describeBlob(a, layer, manifest)).toEqual(sound)
        expect(await describeBlob(b, layer, manifest)).toEqual(sound)
        // The lost one, and all but one of those that were pushed.
        expect(await stores.listTrash()).toHaveLength(16 * layers.indexOf(layer) + 8)

        // The same without a read in between.
        await stores.remove(await stores.keyOf(digest))
        await both((target) => pushBlob(target, app, layer))

        expect(await describeBlob(a, layer, manifest)).toEqual(sound)
        expect(countLostLines(a.output() + b.output(), digest)).toBe(2)
        expect(await stores.listTrash()).toHaveLength(16 * layers.indexOf(layer) + 16)
      }
    },
  )
})
