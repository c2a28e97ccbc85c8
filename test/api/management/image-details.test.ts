// What the API shows of one image, also of images whose config is hostile or missing.
import { afterAll, expect, test } from 'bun:test'
import { digestOf, indexOf, pushApiImage, putManifest } from '../../support/api/api-images.ts'
import { api, startApi } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'team/app'
interface Shown {
  readonly totalBytes: number
  readonly config: unknown
  readonly layers: unknown
  readonly platforms: unknown
  readonly history: readonly { readonly createdBy: string; readonly layer: { readonly digest: string } | null }[]
  readonly referrers: readonly { readonly digest: string; readonly referrers: readonly { readonly digest: string }[] }[]
}
const show = async (digest: string) =>
  (await server.ask('GET', `${api}/repositories/${name}/-/manifests/${digest}`)).json<Shown>()
const config = JSON.stringify({
  created: '2026-01-31T12:00:00Z',
  os: 'linux',
  architecture: 'arm64',
  rootfs: { type: 'layers', diff_ids: [] },
  config: { Env: ['A=1', 7], Cmd: ['run'], User: 'app', Labels: { a: 'b', bad: 1 }, ExposedPorts: { '80/tcp': {} } },
  history: [{ created_by: 'ADD one' }, { created_by: 'ENV A=1', empty_layer: true }, { created_by: 'ADD two' }],
})

test('an image has its config, its history beside its layers, its tags and its referrers as a tree', async () => {
  const layers = ['layer one', 'the second layer']
  const image = await pushApiImage(server, name, 'latest', { config, layers })
  await putManifest(server, name, '1.0', image)
  const sbom = await pushApiImage(server, name, 'sbom', { subject: image.descriptor, artifactType: 'a/sbom' })
  const signed = await pushApiImage(server, name, 'sig', { subject: sbom.descriptor, artifactType: 'a/sig' })

  const shown = await show(image.digest)
  expect(shown).toMatchObject({ name, digest: image.digest, tags: ['1.0', 'latest'], platforms: [], isCut: false })
  expect(shown.totalBytes).toBe(image.bytes.length + config.length + layers.join('').length)
  expect(shown.config).toEqual({
    created: '2026-01-31T12:00:00Z',
    os: 'linux',
    architecture: 'arm64',
    variant: null,
    user: 'app',
    workingDir: null,
    env: ['A=1'],
    entrypoint: [],
    cmd: ['run'],
    exposedPorts: ['80/tcp'],
    labels: { a: 'b' },
  })
  expect(shown.history.map((step) => [step.createdBy, step.layer?.digest])).toEqual([
    ['ADD one', digestOf('layer one')],
    ['ENV A=1', undefined],
    ['ADD two', digestOf('the second layer')],
  ])
  expect(shown.referrers.map((one) => [one.digest, one.referrers[0]?.digest])).toEqual([[sbom.digest, signed.digest]])
})

test('an index has its platforms; entries with attestations are marked and have none', async () => {
  const image = await pushApiImage(server, name, 'child', { config })
  const attestation = await pushApiImage(server, name, 'attestation', { annotations: { of: 'child' } })
  const index = indexOf([
    { ...image.descriptor, platform: { os: 'linux', architecture: 'arm', variant: 'v7' } } as never,
    {
      ...attestation.descriptor,
      platform: { os: 'unknown', architecture: 'unknown' },
      annotations: {
        'vnd.docker.reference.type': 'attestation-manifest',
        'vnd.docker.reference.digest': image.digest,
      },
    } as never,
  ])
  await putManifest(server, name, 'multi', index)

  const { platforms, config: none, layers } = await show(index.digest)
  expect([none, layers]).toEqual([null, []])
  const sizeOf = ({ bytes }: { bytes: string }) => bytes.length
  const common = { mediaType: image.mediaType }
  expect(platforms).toEqual([
    {
      ...common,
      digest: image.digest,
      sizeBytes: sizeOf(image),
      os: 'linux',
      architecture: 'arm',
      variant: 'v7',
      attests: null,
    },
    {
      ...common,
      digest: attestation.digest,
      sizeBytes: sizeOf(attestation),
      os: null,
      architecture: null,
      variant: null,
      attests: image.digest,
    },
  ])
})

test('a config that is no config, or hostile, does no harm', async () => {
  for (const text of ['[]', '{"rootfs":{},"history":[7,null,{"created_by":{}}],"config":[]}', 'no JSON']) {
    const image = await pushApiImage(server, name, 'hostile', { config: text, layers: ['x'] })
    expect((await server.ask('GET', `${api}/repositories/${name}/-/manifests/${image.digest}`)).status).toBe(200)
  }
  expect((await server.ask('GET', `${api}/repositories/${name}/-/manifests/${digestOf('none')}`)).status).toBe(404)
})
