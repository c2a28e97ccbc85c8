// Real answers against the document. Every test of this folder holds its answers to it; here nothing is left out.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, ociManifest, pushApiImage, pushBlob, startUpload } from '../support/api/api-images.ts'
import { api, identity, ownHeaders, type Question, type Reply, startApi } from '../support/api/api-server.ts'
import { findContradictions, schemaFaults } from '../support/api/documented-answer.ts'
import { json as withJson } from '../support/api/managed-users.ts'
import { findOperation, openApi, operations } from '../support/api/openapi-document.ts'
import { testAdminPassword, testApiKey } from '../support/basics/test-project.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { s3Variables } from '../support/stores/test-stores.ts'

// Bearer mode adds one operation and changes no other. The client `stays` is never redirected, so it gets the blob.
const stub = startS3Stub()
const server = await startApi({
  BERTH_AUTH__CHALLENGE: 'bearer',
  ...s3Variables(stub, ''),
  BERTH_STORAGE__REDIRECT: 'true',
  // Only an object has an address in S3.
  BERTH_STORAGE__INLINE_BYTES: '0',
  BERTH_STORAGE__REDIRECT_EXCEPT_AGENTS: 'stays',
  // Each webhook fails at once, and for ever.
  BERTH_WEBHOOKS__ALLOWED_NETWORKS: '127.0.0.1',
  BERTH_WEBHOOKS__GIVE_UP: '0s',
})
const stays = { 'user-agent': 'stays' }
afterAll(async () => {
  await server.stop()
  await stub.stop()
})

const name = 'answers/app'
const { digest, bytes } = await pushApiImage(server, name, 'v1')
const blob = await pushBlob(server, name, 'a blob')

const repositoryPath = `${api}/repositories/${name}`
const tagV1 = `${repositoryPath}/-/tags/v1`
const immutableTags = `${api}/policies/immutable-tags`
const retention = `${api}/policies/retention`
const keepAll = { keep: [{ tags: ['*'] }] }
const ask = (method: string, path: string, question: Question = {}) => ({ method, path, question })
type Asked = ReturnType<typeof ask>
const has = { headers: { 'if-none-match': '*' } }
const upload = () => startUpload(server, name)

const webhook = { url: 'http://127.0.0.1:1/', types: ['tag.created'] }
async function onDead(path: string): Promise<Asked> {
  await server.ask('POST', `${api}/webhooks`, withJson({ name: 'dead', ...webhook }))
  return ask('GET', `${api}/webhooks/dead${path}`)
}
async function findDead(): Promise<string> {
  const { path, method } = await onDead('/deliveries?state=dead')
  await pushApiImage(server, name, 'for-the-webhook')
  for (;;) {
    const reply = await server.ask(method, path)
    const [first] = reply.json<{ deliveries: readonly { id: string }[] }>().deliveries
    if (first !== undefined) return first.id
    await Bun.sleep(50)
  }
}

/** Every answer of yes: operation, status, and how to get it. HEAD follows from GET. */
const successes: readonly (readonly [string, number, () => Asked | Promise<Asked>])[] = [
  ['enableService', 200, () => ask('POST', `${api}/enable`)],
  ['disableService', 200, () => ask('POST', `${api}/disable`)],
  ['enableService', 200, () => ask('POST', `${api}/enable`)],
  ['getStats', 200, () => ask('GET', `${api}/stats`)],
  ['getOpenApi', 200, () => ask('GET', `${api}/openapi.json`)],
  ['getStartPage', 200, () => ask('GET', '/')],
  ['getHealth', 200, () => ask('GET', '/healthz')],
  ['getReadiness', 200, () => ask('GET', '/readyz')],
  ['getMe', 200, () => ask('GET', `${identity}/me`)],
  [
    'postToken',
    200,
    () => ask('POST', `${identity}/token/auth`, withJson({ username: 'admin', password: testAdminPassword })),
  ],
  ['getKeySet', 200, () => ask('GET', `${identity}/jwks.json`)],
  ['postUser', 201, () => ask('POST', `${identity}/users`, withJson({ name: 'bob', roles: ['reader'] }))],
  ['getUsers', 200, () => ask('GET', `${identity}/users`)],
  ['getUser', 200, () => ask('GET', `${identity}/users/bob`)],
  ['patchUser', 200, () => ask('PATCH', `${identity}/users/bob`, withJson({ disabled: true }))],
  ['postApiKey', 201, () => ask('POST', `${identity}/users/bob/keys`, withJson({ name: 'ci', rights: ['pull'] }))],
  ['getApiKeys', 200, () => ask('GET', `${identity}/users/bob/keys`)],
  ['deleteApiKey', 204, () => ask('DELETE', `${identity}/users/bob/keys/ci`)],
  ['getScopedToken', 200, () => ask('GET', `/v2/_token?scope=repository:${name}:pull`)],
  [
    'postScopedToken',
    200,
    () =>
      ask('POST', '/v2/_token', {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `grant_type=password&username=apikey&password=${testApiKey}&scope=repository:${name}:pull`,
      }),
  ],
  ['checkAuthentication', 200, () => ask('GET', '/v2/')],
  ['getCatalog', 200, () => ask('GET', '/v2/_catalog')],
  ['getImageTagManifest', 200, () => ask('GET', `/v2/${name}/manifests/v1`)],
  ['getImageTagManifest', 304, () => ask('GET', `/v2/${name}/manifests/v1`, has)],
  [
    'putImageTagManifest',
    201,
    () => ask('PUT', `/v2/${name}/manifests/v2`, { headers: { 'content-type': ociManifest }, body: bytes }),
  ],
  ['getTag', 200, () => ask('GET', `${tagV1}?at=${new Date().toISOString()}`)],
  ['getTagHistory', 200, () => ask('GET', `${tagV1}/history`)],
  ['putImmutableTags', 200, () => ask('PUT', immutableTags, withJson({ rules: [{ tags: ['v9'] }] }))],
  ['getImmutableTags', 200, () => ask('GET', immutableTags)],
  ['deleteImmutableTags', 204, () => ask('DELETE', immutableTags)],
  ['putRetention', 200, () => ask('PUT', retention, withJson({ rules: [keepAll], untaggedAfter: '7d' }))],
  ['getRetention', 200, () => ask('GET', retention)],
  ['getRetentionPlan', 200, () => ask('GET', `${retention}/plan?repository=${name}`)],
  ['postRetentionPlan', 200, () => ask('POST', `${retention}/plan`, withJson({ rules: [keepAll] }))],
  ['runRetention', 200, () => ask('POST', `${retention}/run`)],
  ['deleteRetention', 204, () => ask('DELETE', retention)],
  ['getAudit', 200, () => ask('GET', `${api}/audit`)],
  ['getImage', 200, () => ask('GET', `${repositoryPath}/-/manifests/${digest}`)],
  ['deleteTags', 200, () => ask('DELETE', `${repositoryPath}/-/tags?match=*&dryRun=true`)],
  ['deleteTag', 200, () => ask('DELETE', `${tagV1}?dryRun=true`)],
  ['deleteImage', 200, () => ask('DELETE', `${repositoryPath}/-/manifests/${digest}?companions=true`)],
  ['getDeletedManifests', 200, () => ask('GET', `${repositoryPath}/-/deleted-manifests`)],
  ['undeleteManifest', 200, () => ask('POST', `${repositoryPath}/-/manifests/${digest}/undelete`)],
  ['deleteRepository', 200, () => ask('DELETE', repositoryPath)],
  ['undeleteRepository', 200, () => ask('POST', `${repositoryPath}/-/undelete`)],
  [
    'purgeDeletedManifest',
    204,
    async () => {
      const spare = await pushApiImage(server, name, 'spare', { annotations: { is: 'spare' } })
      await server.ask('DELETE', `${repositoryPath}/-/manifests/${spare.digest}`)
      return ask('DELETE', `${repositoryPath}/-/deleted-manifests/${spare.digest}`)
    },
  ],
  ['getUntaggedManifests', 200, () => ask('GET', `${api}/repositories/${name}/-/untagged-manifests`)],
  ['getRepositories', 200, () => ask('GET', `${api}/repositories`)],
  ['getRepository', 200, () => ask('GET', `${api}/repositories/${name}`)],
  ['getQuota', 200, () => ask('GET', `${api}/quota`)],
  ['getStorage', 200, () => ask('GET', `${api}/storage`)],
  ['getUploads', 200, () => ask('GET', `${api}/uploads`)],
  ['restoreTag', 200, () => ask('POST', `${tagV1}/restore`, withJson({ digest }))],
  ['deleteManifest', 202, () => ask('DELETE', `/v2/${name}/manifests/v2`)],
  ['getImageTagsList', 200, () => ask('GET', `/v2/${name}/tags/list`)],
  ['getImageDigestReferrers', 200, () => ask('GET', `/v2/${name}/referrers/${digest}`)],
  ['getBlob', 200, () => ask('GET', `/v2/${name}/blobs/${blob}`, { headers: stays })],
  ['getBlob', 206, () => ask('GET', `/v2/${name}/blobs/${blob}`, { headers: { ...stays, range: 'bytes=0-1' } })],
  ['getBlob', 307, () => ask('GET', `/v2/${name}/blobs/${blob}`)],
  ['getBlob', 304, () => ask('GET', `/v2/${name}/blobs/${blob}`, has)],
  ['postUpload', 201, () => ask('POST', `/v2/answers/other/blobs/uploads/?mount=${blob}&from=${name}`)],
  ['postUpload', 202, () => ask('POST', `/v2/${name}/blobs/uploads/`)],
  ['patchUpload', 202, async () => ask('PATCH', await upload(), { body: 'x' })],
  ['putUpload', 201, async () => ask('PUT', `${await upload()}?digest=${digestOf('x')}`, { body: 'x' })],
  ['getUpload', 204, async () => ask('GET', await upload())],
  ['deleteUpload', 204, async () => ask('DELETE', await upload())],
  ['getEvents', 200, () => ask('GET', `${api}/events`)],
  ['getWebhooks', 200, () => ask('GET', `${api}/webhooks`)],
  ['postWebhook', 201, () => ask('POST', `${api}/webhooks`, withJson({ name: 'ci', ...webhook }))],
  ['getWebhook', 200, () => onDead('')],
  ['putWebhook', 200, () => ask('PUT', `${api}/webhooks/ci`, withJson(webhook))],
  ['postWebhookTest', 200, () => ask('POST', `${api}/webhooks/ci/test`)],
  ['getWebhookDeliveries', 200, () => onDead('/deliveries')],
  ['deleteWebhook', 204, () => ask('DELETE', `${api}/webhooks/ci`)],
  [
    'postWebhookRedelivery',
    202,
    async () => ask('POST', `${api}/webhooks/dead/deliveries/${await findDead()}/redeliver`),
  ],
  ['deleteBlob', 202, async () => ask('DELETE', `/v2/${name}/blobs/${await pushBlob(server, name, 'another')}`)],
]

describe('an answer of yes is as the document has it', () => {
  test.each(successes)('%s %d', async (operationId, status, prepare) => {
    const { method, path, question } = await prepare()
    const reply = await server.ask(method, path, question)

    expect(reply.status).toBe(status)
    expect(findOperation(method, path.split('?')[0] ?? '')?.operationId).toBe(operationId)
    expect(findContradictions(method, path, reply)).toEqual([])
  })

  test('and none that the document has was left out', () => {
    const documented = operations
      .filter((operation) => operation.method !== 'HEAD')
      .flatMap(({ operationId, responses }) => Object.keys(responses).map((status) => `${operationId} ${status}`))
      .filter((answer) => / [23]\d\d$/.test(answer))
    const asked = successes.map(([operationId, status]) => `${operationId} ${status}`)

    expect([...new Set(asked)].sort()).toEqual(documented.sort())
  })
})

const reads = successes.filter(([operationId, status]) => operationId.startsWith('get') && ![206, 307].includes(status))

describe('HEAD has the status and the headers of GET, and no body', () => {
  test.each(reads.map(([operationId, status, prepare]) => [operationId, status, prepare] as const))(
    '%s %d',
    async (_, status, prepare) => {
      const { path, question } = await prepare()
      const [get, head] = [await server.ask('GET', path, question), await server.ask('HEAD', path, question)]

      expect([head.status, head.text]).toEqual([status, ''])
      expect(ownHeaders(head).map((name) => [name, head.headers.get(name)])).toEqual(
        ownHeaders(get).map((name) => [name, get.headers.get(name)]),
      )
    },
  )
})

describe('what holds answers to the document', () => {
  const replyOf = (status: number, headers: Record<string, string>, text: string): Reply => ({
    status,
    headers: new Headers(headers),
    bytes: new TextEncoder().encode(text),
    text,
    json: <T>() => JSON.parse(text) as T,
  })
  const json = { 'content-type': 'application/json' }
  const stats = '{"imageCount":1,"serverUrl":"http://localhost"}'

  test('finds nothing wrong with an answer that fits', () => {
    expect(findContradictions('GET', `${api}/stats`, replyOf(200, json, stats))).toEqual([])
  })

  test.each([
    ['a status that is not documented', 418, json, stats],
    ['a field of another type', 200, json, stats.replace('1', '"1"')],
    ['a missing field', 200, json, '{"imageCount":1}'],
    ['a content type with parameters', 200, { 'content-type': 'application/json; charset=utf-8' }, stats],
    ['a header that is not documented', 200, { ...json, location: '/' }, stats],
    ['a missing header', 401, json, '{"msg":"no"}'],
  ])('finds %s', (_, status, headers, text) => {
    expect(findContradictions('GET', `${api}/stats`, replyOf(status, headers, text)).length).toBe(1)
  })

  test('finds a body where there must be none', () => {
    expect(findContradictions('POST', `${api}/enable`, replyOf(200, {}, '{}')).length).toBe(1)
    expect(findContradictions('HEAD', `${api}/stats`, replyOf(200, json, stats)).length).toBe(1)
  })

  test('looks into what a schema refers to', () => {
    const schema = openApi.components.schemas['ReferrerResponse'] ?? {}
    const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests: [{ size: 'x' }] }

    expect(schemaFaults(schema, index, 'body').length).toBe(1)
    expect(schemaFaults(schema, { ...index, manifests: [] }, 'body')).toEqual([])
  })
})
