import { deleteApiKey, getApiKeys, postApiKey } from './identity/api-keys.ts'
import { getKeySet } from './identity/key-set.ts'
import { getMe } from './identity/me.ts'
import { postToken } from './identity/token.ts'
import { getUser, getUsers, patchUser, postUser } from './identity/users.ts'
import { apiPrefix, identityPrefix } from './mounts.ts'
import { getOpenApi } from './openapi/openapi.ts'
import { getHealth, getReadiness } from './probes/health.ts'
import type { Route } from './route.ts'
import { disableService, enableService, getStats } from './service/service.ts'
import { getStartPage } from './start-page.ts'
import { checkAuthentication } from './v2/base.ts'
import { deleteBlobByDigest, getBlob } from './v2/blobs.ts'
import { getCatalog } from './v2/catalog.ts'
import { deleteManifestOrTag, getImageTagManifest, putImageTagManifest } from './v2/manifests.ts'
import { getReferrers } from './v2/referrers.ts'
import { getScopedToken, postScopedToken } from './v2/scoped-token.ts'
import { getTagsList } from './v2/tags.ts'
import { deleteUpload, getUpload, patchUpload, postUpload, putUpload } from './v2/uploads.ts'

/** Routes at fixed addresses. */
export const serviceRoutes: readonly Route[] = [
  { operationId: 'getStartPage', method: 'GET', pattern: '/', access: 'anyone', handle: getStartPage },
  { operationId: 'getHealth', method: 'GET', pattern: '/healthz', access: 'anyone', handle: getHealth },
  { operationId: 'getReadiness', method: 'GET', pattern: '/readyz', access: 'anyone', handle: getReadiness },
  {
    operationId: 'getOpenApi',
    method: 'GET',
    pattern: `${apiPrefix}/openapi.json`,
    access: 'anyone',
    handle: getOpenApi,
  },
  {
    operationId: 'postToken',
    method: 'POST',
    pattern: `${identityPrefix}/token/auth`,
    access: 'anyone',
    handle: postToken,
  },
  {
    operationId: 'getMe',
    method: 'GET',
    pattern: `${identityPrefix}/me`,
    access: 'known caller',
    right: undefined,
    handle: getMe,
  },
  {
    operationId: 'getKeySet',
    method: 'GET',
    pattern: `${identityPrefix}/jwks.json`,
    access: 'anyone',
    handle: getKeySet,
  },
  {
    operationId: 'getUsers',
    method: 'GET',
    pattern: `${identityPrefix}/users`,
    access: 'known caller',
    right: 'operate',
    handle: getUsers,
  },
  {
    operationId: 'postUser',
    method: 'POST',
    pattern: `${identityPrefix}/users`,
    access: 'known caller',
    right: 'operate',
    handle: postUser,
  },
  {
    operationId: 'getUser',
    method: 'GET',
    pattern: `${identityPrefix}/users/{user}`,
    access: 'known caller',
    right: 'operate',
    handle: getUser,
  },
  {
    operationId: 'patchUser',
    method: 'PATCH',
    pattern: `${identityPrefix}/users/{user}`,
    access: 'known caller',
    right: 'operate',
    handle: patchUser,
  },
  {
    operationId: 'getApiKeys',
    method: 'GET',
    pattern: `${identityPrefix}/users/{user}/keys`,
    access: 'known caller',
    right: 'operate',
    handle: getApiKeys,
  },
  {
    operationId: 'postApiKey',
    method: 'POST',
    pattern: `${identityPrefix}/users/{user}/keys`,
    access: 'known caller',
    right: 'operate',
    handle: postApiKey,
  },
  {
    operationId: 'deleteApiKey',
    method: 'DELETE',
    pattern: `${identityPrefix}/users/{user}/keys/{key}`,
    access: 'known caller',
    right: 'operate',
    handle: deleteApiKey,
  },
  {
    operationId: 'enableService',
    method: 'POST',
    pattern: `${apiPrefix}/enable`,
    access: 'known caller',
    right: 'operate',
    handle: enableService,
  },
  {
    operationId: 'disableService',
    method: 'POST',
    pattern: `${apiPrefix}/disable`,
    access: 'known caller',
    right: 'operate',
    handle: disableService,
  },
  {
    operationId: 'getStats',
    method: 'GET',
    pattern: `${apiPrefix}/stats`,
    access: 'known caller',
    right: 'operate',
    handle: getStats,
  },
]

/** Routes below each mount of the registry interface; `{name}` may hold slashes. The hottest stand first. */
export const registryRoutes: readonly Route[] = [
  {
    operationId: 'getImageTagManifest',
    method: 'GET',
    pattern: '/{name}/manifests/{reference}',
    access: 'repository',
    right: 'pull',
    handle: getImageTagManifest,
  },
  {
    operationId: 'putImageTagManifest',
    method: 'PUT',
    pattern: '/{name}/manifests/{reference}',
    access: 'repository',
    right: 'push',
    handle: putImageTagManifest,
  },
  {
    operationId: 'deleteManifest',
    method: 'DELETE',
    pattern: '/{name}/manifests/{reference}',
    access: 'repository',
    right: 'delete',
    handle: deleteManifestOrTag,
  },
  {
    operationId: 'postUpload',
    method: 'POST',
    pattern: '/{name}/blobs/uploads/',
    access: 'repository',
    right: 'push',
    handle: postUpload,
  },
  {
    operationId: 'postUploadWithoutSlash',
    method: 'POST',
    pattern: '/{name}/blobs/uploads',
    access: 'repository',
    right: 'push',
    handle: postUpload,
  },
  {
    operationId: 'getBlob',
    method: 'GET',
    pattern: '/{name}/blobs/{digest}',
    access: 'repository',
    right: 'pull',
    handle: getBlob,
  },
  {
    operationId: 'deleteBlob',
    method: 'DELETE',
    pattern: '/{name}/blobs/{digest}',
    access: 'repository',
    right: 'delete',
    handle: deleteBlobByDigest,
  },
  {
    operationId: 'patchUpload',
    method: 'PATCH',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: patchUpload,
  },
  {
    operationId: 'putUpload',
    method: 'PUT',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: putUpload,
  },
  {
    operationId: 'getUpload',
    method: 'GET',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: getUpload,
  },
  {
    operationId: 'deleteUpload',
    method: 'DELETE',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: deleteUpload,
  },
  {
    operationId: 'getImageTagsList',
    method: 'GET',
    pattern: '/{name}/tags/list',
    access: 'repository',
    right: 'pull',
    handle: getTagsList,
  },
  {
    operationId: 'getImageDigestReferrers',
    method: 'GET',
    pattern: '/{name}/referrers/{digest}',
    access: 'repository',
    right: 'pull',
    handle: getReferrers,
  },
  {
    operationId: 'getCatalog',
    method: 'GET',
    pattern: '/_catalog',
    access: 'enabled account',
    right: 'pull',
    handle: getCatalog,
  },
  { operationId: 'getScopedToken', method: 'GET', pattern: '/_token', access: 'anyone', handle: getScopedToken },
  { operationId: 'postScopedToken', method: 'POST', pattern: '/_token', access: 'anyone', handle: postScopedToken },
  {
    operationId: 'checkAuthentication',
    method: 'GET',
    pattern: '/',
    access: 'known caller',
    right: undefined,
    handle: checkAuthentication,
  },
]
