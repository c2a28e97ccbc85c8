// How each refusal is provoked over the wire. A refusal that is not here fails the test of errors, and does not compile.
import type { Refusal } from '../../src/oci/errors.ts'
import {
  digestOf,
  imageOf,
  indexOf,
  type Manifest,
  ociManifest,
  pushApiImage,
  pushBlob,
  putManifest,
  startUpload,
} from '../support/api/api-images.ts'
import { api, identity, type Question } from '../support/api/api-server.ts'
import { setQuota } from '../support/api/quotas.ts'
import { interruptedUpload, occupiedUpload, slowBody } from './interrupted-requests.ts'
import { get, type Prepare, type Way } from './provocation.ts'
import { usersAndKeys, whoIsCalling } from './provocations-of-identity.ts'
import { webhooks } from './provocations-of-webhooks.ts'

const name = 'refused/app'
const absent = `sha256:${'0'.repeat(64)}`
const remove = (path: string) => ({ method: 'DELETE', path })
const put = (mount: string, reference: string, manifest: Manifest | string, contentType: string = ociManifest) => ({
  method: 'PUT',
  path: `${mount}/${name}/manifests/${reference}`,
  headers: { 'content-type': contentType },
  body: typeof manifest === 'string' ? manifest : manifest.bytes,
})
const onUpload =
  (method: string, query: string, question: Question = {}): Prepare =>
  async (mount, server) => ({ method, path: (await startUpload(server, name, mount)) + query, ...question })

const jsonBody = { headers: { 'content-type': 'application/json' }, body: '{}' }

const login = (body: string, contentType = 'application/json'): Way => ({
  service: () => ({
    method: 'POST',
    path: `${identity}/token/auth`,
    headers: { 'content-type': contentType },
    body,
  }),
})

const theRequestItself = {
  'route-unknown': {
    registry: (mount) => get(`${mount}/nothing`),
    service: () => get('/nothing'),
  },
  'method-unsupported': {
    registry: (mount) => ({ method: 'POST', path: `${mount}/_catalog` }),
    service: () => get(`${api}/enable`),
  },
  'host-invalid': {
    registry: (mount) => get(`${mount}/`, { headers: { host: 'word@example.com' } }),
    service: () => get(`${api}/stats`, { headers: { host: 'word@example.com' } }),
  },
  'path-invalid': {
    registry: (mount) => ({ method: 'POST', path: `${mount}/a%2fb/blobs/uploads/` }),
    service: () => get('/a%2fb'),
  },
  'uri-too-long': {
    registry: (mount) => get(`${mount}/_catalog?last=${'x'.repeat(9_000)}`),
    service: () => get(`${api}/stats?${'x'.repeat(9_000)}`),
  },
  'content-encoding-unsupported': {
    registry: onUpload('PATCH', '', { body: 'x', headers: { 'content-encoding': 'gzip' } }),
    service: () => ({
      method: 'POST',
      path: `${identity}/token/auth`,
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: '{}',
    }),
  },
  'body-invalid': login('not JSON'),
  'body-incomplete': {
    registry: async (mount, server) => interruptedUpload(server, await startUpload(server, name, mount)),
  },
  'body-too-slow': {
    settings: { BERTH_LIMITS__BODY_WINDOW: '1s', BERTH_LIMITS__BODY_BYTES_PER_SECOND: '1MiB' },
    registry: async (mount, server) => slowBody(server, 'PATCH', await startUpload(server, name, mount)),
    service: async (_, server) => slowBody(server, 'POST', `${identity}/token/auth`),
  },
  'page-size-invalid': { registry: (mount) => get(`${mount}/_catalog?n=many`) },
  'sort-invalid': { service: () => get(`${api}/repositories?sort=colour`) },
  'query-invalid': { service: () => remove(`${api}/repositories/${name}/-/tags`) },
} satisfies Partial<Record<Refusal, Way>>

const namesAndDigests = {
  'name-invalid': { registry: (mount) => ({ method: 'POST', path: `${mount}/NOT/valid/blobs/uploads/` }) },
  'path-unknown': { registry: (mount) => get(`${mount}/a%2fb/tags/list`) },
  'name-unknown': { registry: (mount) => get(`${mount}/no/such/tags/list`) },
  'tag-invalid': { registry: (mount) => put(mount, '-bad', imageOf()) },
  'too-many-tags': {
    registry: (mount) => {
      const tags = Array.from({ length: 17 }, (_, number) => `tag=t${number}`)
      return put(mount, `${imageOf().digest}?${tags.join('&')}`, imageOf())
    },
  },
  'digest-invalid': { registry: (mount) => remove(`${mount}/${name}/blobs/sha256:short`) },
  'digest-unsupported': { registry: (mount) => remove(`${mount}/${name}/blobs/md5:d41d8cd98f00b204e9800998`) },
  'digest-mismatch': { registry: onUpload('PUT', `?digest=${absent}`, { body: 'other bytes' }) },
} satisfies Partial<Record<Refusal, Way>>

const manifests = {
  'manifest-unknown': {
    registry: async (mount, server) => {
      await pushBlob(server, name, 'makes the repository')
      return get(`${mount}/${name}/manifests/absent`)
    },
  },
  'tag-history-unknown': {
    service: async (_mount, server) => {
      await pushBlob(server, name, 'makes the repository')
      return { method: 'POST', path: `${api}/repositories/${name}/-/tags/never/restore`, ...jsonBody }
    },
  },
  'tag-immutable': {
    registry: async (mount, server) => {
      const rules = { body: '{"rules":[{"tags":["fixed"]}]}', headers: { 'content-type': 'application/json' } }
      await server.ask('PUT', `${api}/policies/immutable-tags`, rules)
      for (const config of ['{}', '{"a":1}'])
        await pushApiImage(server, name, config.length > 2 ? 'other' : 'fixed', { config })
      return put(mount, 'fixed', imageOf({ config: '{"a":1}' }))
    },
  },
  'time-invalid': { service: () => get(`${api}/repositories/${name}/-/tags/v1?at=yesterday`) },
  'manifest-invalid': { registry: (mount) => put(mount, 'v1', '{}') },
  'manifest-type-unsupported': { registry: (mount) => put(mount, 'v1', '{}', 'application/json') },
  'manifest-too-large': {
    settings: { BERTH_LIMITS__MANIFEST_BYTES: '1MiB' },
    registry: (mount) => put(mount, 'v1', ' '.repeat(1024 * 1024 + 1)),
  },
  'manifest-blob-unknown': { registry: (mount) => put(mount, 'v1', imageOf({ layers: ['nowhere'] })) },
  'manifest-in-use': {
    registry: async (mount, server) => {
      const child = await pushApiImage(server, name, 'child')
      await putManifest(server, name, 'index', indexOf([child.descriptor]))
      return { method: 'DELETE', path: `${mount}/${name}/manifests/${child.digest}` }
    },
  },
} satisfies Partial<Record<Refusal, Way>>

const blobsAndUploads = {
  'blob-unknown': {
    registry: async (mount, server) => {
      await pushBlob(server, name, 'makes the repository')
      return get(`${mount}/${name}/blobs/${absent}`)
    },
  },
  'blob-in-use': {
    registry: async (mount, server) => {
      await pushApiImage(server, name, 'v1', { layers: ['in use'] })
      return { method: 'DELETE', path: `${mount}/${name}/blobs/${digestOf('in use')}` }
    },
  },
  'blob-too-large': {
    settings: { BERTH_LIMITS__BLOB_BYTES: '1MiB' },
    registry: onUpload('PATCH', '', { body: 'x'.repeat(1024 * 1024 + 1) }),
  },
  'range-unsatisfiable': {
    registry: async (mount, server) =>
      get(`${mount}/${name}/blobs/${await pushBlob(server, name, 'short')}`, { headers: { range: 'bytes=99-' } }),
  },
  'upload-unknown': { registry: (mount) => get(`${mount}/${name}/blobs/uploads/${crypto.randomUUID()}`) },
  'upload-out-of-order': { registry: onUpload('PATCH', '', { body: 'x', headers: { 'content-range': '7-7' } }) },
  'upload-busy': { registry: async (mount, server) => occupiedUpload(server, await startUpload(server, name, mount)) },
  'content-range-invalid': { registry: onUpload('PATCH', '', { body: 'x', headers: { 'content-range': 'all' } }) },
  'content-length-mismatch': { registry: onUpload('PATCH', '', { body: 'x', headers: { 'content-range': '0-9' } }) },
  'disk-low': {
    // More than any disk has.
    settings: { BERTH_STORAGE__MIN_FREE: '4096TiB' },
    registry: (mount) => ({ method: 'POST', path: `${mount}/${name}/blobs/uploads/` }),
  },
  'quota-exceeded': {
    // A server of its own, because the quota stays.
    settings: { BERTH_LIMITS__TAGS_PER_PUSH: '17' },
    registry: async (mount, server) => {
      await setQuota(server, { bytes: 0 })
      return { method: 'POST', path: `${mount}/${name}/blobs/uploads/` }
    },
  },
  'too-many-uploads': {
    settings: { BERTH_LIMITS__UPLOADS_PER_REPOSITORY: '1' },
    registry: async (mount, server) => {
      // Whatever stands there already, one more is too many.
      await server.ask('POST', `${mount}/${name}/blobs/uploads/`)
      return { method: 'POST', path: `${mount}/${name}/blobs/uploads/` }
    },
  },
} satisfies Partial<Record<Refusal, Way>>

export const ways: Readonly<Record<Refusal, Way>> = {
  ...whoIsCalling,
  ...usersAndKeys,
  ...theRequestItself,
  ...namesAndDigests,
  ...manifests,
  ...blobsAndUploads,
  ...webhooks,
}
