// Enabling, disabling and using an account in any order, against a model of a few lines; and what is in it stays.
import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { indexOf, pushApiImage, putManifest, startUpload } from '../../support/api/api-images.ts'
import { api } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy, type WiredRegistry, wireRegistry } from '../../support/api/wired-registry.ts'
import { seed } from '../../support/basics/fuzzing.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { auditStores } from '../../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('sequences')
const registries = {
  on: await wireRegistry(temporaryFolder()),
  off: await wireRegistry(temporaryFolder(), { settings: { BERTH_ACCOUNTS__AUTO_ENABLE: 'false' } }),
}
afterAll(() => Promise.all([registries.on.stop(), registries.off.stop()]))

const autoEnable = ['on', 'off'] as const
const steps = ['enable', 'disable', 'look', 'push'] as const
type Step = (typeof steps)[number]

class Model {
  state: 'never' | 'enabled' | 'disabled' = 'never'
  readonly images: string[] = []
  readonly #autoEnable: boolean

  constructor(autoEnable: boolean) {
    this.#autoEnable = autoEnable
  }

  /** The status that the step must have. */
  take(step: Step): number {
    if (step === 'enable' || step === 'disable') {
      this.state = `${step}d`
      return 200
    }
    if (this.state === 'never' && this.#autoEnable) this.state = 'enabled'
    if (this.state !== 'enabled') return 403
    if (step === 'push') this.images.push(`image-${this.images.length}`)
    return step === 'push' ? 201 : 200
  }
}

/** Both can be repeated, and the last word counts. */
const repeated = ['disable', 'disable', 'look', 'enable', 'enable', 'push', 'disable', 'push', 'enable'] as const
const emptyIndex = indexOf([])
let accounts = 0

/** Every step's status, and after it the statistics: as they are, and as the model has them. */
async function walk(registry: WiredRegistry, sequence: readonly Step[], model: Model): Promise<[unknown[], unknown[]]> {
  accounts += 1
  const key = await addPerson(registry, { name: `walker-${accounts}`, roles: ['admin'], account: `walk-${accounts}` })
  const walker = askedBy(registry, key)
  const [seen, wanted]: [unknown[], unknown[]] = [[], []]
  const images = async () => (await walker.ask('GET', `${api}/stats`)).json<{ imageCount: number }>().imageCount
  for (const step of sequence) {
    const act = {
      enable: () => walker.ask('POST', `${api}/enable`),
      disable: () => walker.ask('POST', `${api}/disable`),
      look: () => walker.ask('GET', '/v2/_catalog'),
      push: () => putManifest(walker, `image-${model.images.length}`, 'v1', emptyIndex),
    }
    const reply = await act[step]()
    wanted.push([step, model.take(step), model.images.length])
    seen.push([step, reply.status, await images()])
  }
  await walker.ask('POST', `${api}/enable`)
  seen.push((await walker.ask('GET', '/v2/_catalog')).json())
  wanted.push({ repositories: model.images.toSorted() })
  return [seen, wanted]
}

describe.each(autoEnable)('with accounts.auto_enable %s', (setting) => {
  test('any order of steps has the statuses and the numbers of the model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...steps), { maxLength: 20 }), async (sequence) => {
        const [seen, wanted] = await walk(registries[setting], sequence, new Model(setting === 'on'))
        expect(seen).toEqual(wanted)
      }),
      { seed, numRuns: 60, examples: [[[...repeated]]] },
    )
  }, 30_000)
})

test('a model with the other setting does not fit: the walk would show it', async () => {
  const [seen, wanted] = await walk(registries.on, ['look'], new Model(false))

  expect([seen[0], wanted[0]]).toEqual([
    ['look', 200, 0],
    ['look', 403, 0],
  ])
})

test('nothing is lost by disabling and enabling: manifests, tags, blobs, referrers and open uploads', async () => {
  const registry = registries.on
  const image = await pushApiImage(registry, 'kept/app', 'v1', { layers: ['a layer'] })
  const signature = await pushApiImage(registry, 'kept/app', 'signature', {
    subject: image.descriptor,
    artifactType: 'application/x.signature',
  })
  const upload = await startUpload(registry, 'kept/app')
  await registry.ask('PATCH', upload, { body: 'half of it' })
  const paths = [
    '/v2/_catalog',
    '/v2/kept/app/tags/list',
    '/v2/kept/app/manifests/v1',
    `/v2/kept/app/manifests/${signature.digest}`,
    `/v2/kept/app/referrers/${image.digest}`,
    `/v2/kept/app/blobs/${(JSON.parse(image.bytes) as { layers: { digest: string }[] }).layers[0]?.digest}`,
    upload,
  ]
  const look = () => Promise.all(paths.map((path) => registry.ask('GET', path)))
  const tell = (replies: Awaited<ReturnType<typeof look>>) =>
    replies.map(({ status, text, headers }) => [status, text, headers.get('etag'), headers.get('range')])
  const before = tell(await look())

  await registry.ask('POST', `${api}/disable`)
  const between = tell(await look())
  await registry.ask('POST', `${api}/enable`)

  expect(before.map(([status]) => status)).toEqual([200, 200, 200, 200, 200, 200, 204])
  expect(between.map(([status]) => status)).toEqual(paths.map(() => 403))
  expect(tell(await look())).toEqual(before)
  expect(await auditStores(registry.dataDir)).toEqual([])
})
