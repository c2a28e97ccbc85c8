import { accountRoutes } from './accounts.ts'
import { apiKeyRoutes } from './identity/api-keys.ts'
import { keySetRoutes } from './identity/key-set.ts'
import { meRoutes } from './identity/me.ts'
import { tokenRoutes } from './identity/tokens.ts'
import { userRoutes } from './identity/users.ts'
import { auditRoutes } from './management/audit.ts'
import { deletedManifestRoutes } from './management/deleted-manifests.ts'
import { eventRoutes } from './management/events.ts'
import { imageDeletionRoutes, repositoryDeletionRoutes } from './management/image-deletion.ts'
import { imageDetailRoutes } from './management/image-details.ts'
import { immutableTagRoutes } from './management/immutable-tags.ts'
import { quotaRoutes } from './management/quotas.ts'
import { repositoryDetailRoutes, repositoryListRoutes } from './management/repositories.ts'
import { retentionRoutes } from './management/retention.ts'
import { storageRoutes } from './management/storage.ts'
import { tagHistoryRoutes } from './management/tag-history.ts'
import { untaggedRoutes } from './management/untagged.ts'
import { webhookRoutes } from './management/webhook-routes.ts'
import { openApiRoute } from './openapi/openapi.ts'
import { probeRoutes } from './probes.ts'
import type { Route, RouteTable } from './route.ts'
import { startPageRoutes } from './start-page.ts'
import { baseRoutes } from './v2/base.ts'
import { blobRoutes } from './v2/blobs.ts'
import { manifestRoutes } from './v2/manifests.ts'
import { referrerRoutes } from './v2/referrers.ts'
import { repositoryRoutes } from './v2/repositories.ts'
import { scopedTokenRoutes } from './v2/scoped-tokens.ts'
import { tagRoutes } from './v2/tags.ts'
import { uploadRoutes } from './v2/uploads.ts'

/** Routes at fixed paths. */
export const serviceRoutes: readonly Route[] = [
  ...startPageRoutes,
  ...accountRoutes,
  openApiRoute(() => routeTable),
  ...tokenRoutes,
  ...meRoutes,
  ...keySetRoutes,
  ...userRoutes,
  ...apiKeyRoutes,
  ...probeRoutes,
  ...tagHistoryRoutes,
  ...untaggedRoutes,
  ...immutableTagRoutes,
  ...retentionRoutes,
  ...auditRoutes,
  ...repositoryListRoutes,
  ...storageRoutes,
  ...imageDetailRoutes,
  ...imageDeletionRoutes,
  ...deletedManifestRoutes,
  ...quotaRoutes,
  // The last, because a name in the path may contain anything.
  ...repositoryDetailRoutes,
  ...repositoryDeletionRoutes,
  ...eventRoutes,
  ...webhookRoutes,
]

/**
 * Routes below each mount of the registry interface, the most frequent first. The first pattern that matches decides:
 * uploads stand before blobs, because `uploads` would match as a digest.
 */
export const registryRoutes: readonly Route[] = [
  ...manifestRoutes,
  ...uploadRoutes,
  ...blobRoutes,
  ...tagRoutes,
  ...referrerRoutes,
  ...repositoryRoutes,
  ...scopedTokenRoutes,
  ...baseRoutes,
]

const routeTable: RouteTable = { registry: registryRoutes, service: serviceRoutes }
