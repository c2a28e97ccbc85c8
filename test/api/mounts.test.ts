// decisions.md 3: every Location and Link is path-absolute and stays in the mount that the request came in on.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, imageOf, ociManifest, pushApiImage, pushBlob, startUpload } from '../support/api/api-images.ts'
import { api, mounts, type Question, startApi } from '../support/api/api-server.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { askRaw } from '../support/clients/raw-socket.ts'

const server = await startApi({ BERTH_AUTH__FAILURE_BURST: '1000' })
const rootless = await startApi({ BERTH_REGISTRY__ROOT_MOUNT: 'false' })
afterAll(() => Promise.all([server.stop(), rootless.stop()]))

const name = 'mounted/deep/app'
const content = 'content'
const blob = await pushBlob(server, name, content)
await pushApiImage(server, name, 'v1')
await pushApiImage(server, name, 'v2')
await pushApiImage(server, 'zoo', 'v1')

type Asked = readonly [method: string, path: string, question?: Question]
type Prepare = (mount: string) => Asked | Promise<Asked>
const start = (mount: string) => startUpload(server, name, mount)

/** Every answer that leads somewhere. */
const leading: readonly (readonly [string, 'location' | 'link', Prepare])[] = [
  ['a new upload', 'location', (mount) => ['POST', `${mount}/${name}/blobs/uploads/`]],
  [
    'a blob in one request',
    'location',
    (mount) => ['POST', `${mount}/${name}/blobs/uploads/?digest=${blob}`, { body: content }],
  ],
  [
    'a mounted blob',
    'location',
    (mount) => ['POST', `${mount}/mounted/there/blobs/uploads/?mount=${blob}&from=${name}`],
  ],
  ['a failed mount', 'location', (mount) => ['POST', `${mount}/${name}/blobs/uploads/?mount=${digestOf('none')}`]],
  ['a chunk', 'location', async (mount) => ['PATCH', await start(mount), { body: 'x' }]],
  [
    'a chunk out of order',
    'location',
    async (mount) => ['PATCH', await start(mount), { body: 'x', headers: { 'content-range': '5-5' } }],
  ],
  ['the status of an upload', 'location', async (mount) => ['GET', await start(mount)]],
  ['a closed upload', 'location', async (mount) => ['PUT', `${await start(mount)}?digest=${blob}`, { body: content }]],
  [
    'a pushed manifest',
    'location',
    (mount) => [
      'PUT',
      `${mount}/${name}/manifests/v3`,
      { body: imageOf().bytes, headers: { 'content-type': ociManifest } },
    ],
  ],
  ['a page of the catalog', 'link', (mount) => ['GET', `${mount}/_catalog?n=1`]],
  ['a page of tags', 'link', (mount) => ['GET', `${mount}/${name}/tags/list?n=1`]],
]

const forged: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['nothing', {}],
  ['Host', { host: 'evil.example' }],
  ['X-Forwarded-Host', { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-port': '1' }],
  ['X-Forwarded-Prefix', { 'x-forwarded-prefix': '/evil', 'x-original-url': '/evil', 'x-rewrite-url': '/evil' }],
  ['Forwarded', { forwarded: 'host=evil.example;proto=https' }],
]

describe.each(mounts)('at %s', (mount) => {
  describe.each(forged)('with a forged %s', (_, headers) => {
    test.each(leading)('%s leads on in the same mount, and can be followed', async (_name, header, prepare) => {
      const [method, path, question = {}] = await prepare(mount)
      const reply = await server.ask(method, path, { ...question, headers: { ...question.headers, ...headers } })
      const target = reply.headers.get(header)?.replace(/^<|>; rel="next"$/g, '')

      expect(target).toStartWith(`${mount}/`)
      expect(target).not.toContain('evil')
      expect([200, 204]).toContain((await server.ask('GET', target ?? '')).status)
    })
  })
})

describe('with registry.root_mount off', () => {
  test.each(['/v2/', '/v2', '/v2/_catalog', '/v2/app/tags/list'])('%s is 404 with {msg} alone', async (path) => {
    // By hand: the document has the root mount, which this server has not.
    const reply = await askRaw(rootless.port, `GET ${path} HTTP/1.1`, [`X-API-KEY: ${testApiKey}`])

    expect([reply.status, JSON.parse(reply.body)]).toEqual([404, { msg: 'no such endpoint' }])
  })

  test('the registry goes on under the prefix', async () => {
    const reply = await rootless.ask('POST', `${api}/v2/app/blobs/uploads/`)

    expect(reply.headers.get('location')).toStartWith(`${api}/v2/app/blobs/uploads/`)
  })
})

describe('a key in the query', () => {
  const asked: readonly (readonly [string, Prepare])[] = [
    ...leading.map(([what, , prepare]) => [what, prepare] as const),
    ['a repository that is not there', (mount) => ['GET', `${mount}/no/such/tags/list`]],
    ['an endpoint that is not there', (mount) => ['GET', `${mount}/nothing`]],
    ['a bad page', (mount) => ['GET', `${mount}/_catalog?n=bad`]],
    ['a bad digest', (mount) => ['GET', `${mount}/${name}/blobs/sha256:bad`]],
    ['a method that is not there', (mount) => ['POST', `${mount}/_catalog`]],
    ['the statistics', () => ['GET', `${api}/stats`]],
    ['enabling', () => ['POST', `${api}/enable`]],
  ]
  const withKey = async (prepare: Prepare, mount: string, key: string) => {
    const [method, path, question = {}] = await prepare(mount)
    return server.ask(method, `${path}${path.includes('?') ? '&' : '?'}apiKey=${key}`, { ...question, key: 'none' })
  }

  describe.each(mounts)('at %s', (mount) => {
    test.each(asked)('does not come back from %s, right or wrong', async (_, prepare) => {
      for (const [key, isGood] of [
        [testApiKey, true],
        ['a-wrong-key-that-is-secret', false],
      ] as const) {
        const reply = await withKey(prepare, mount, key)
        const shown = JSON.stringify([...reply.headers]) + reply.text

        expect(reply.status === 401).toBe(!isGood)
        expect(shown).not.toContain(key)
        if (isGood) expect(shown).not.toContain('apiKey')
      }
    })
  })
})
