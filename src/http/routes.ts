import { apiKeyRoutes } from './identity/api-keys.ts'
import { keySetRoutes } from './identity/key-set.ts'
import { meRoutes } from './identity/me.ts'
import { tokenRoutes } from './identity/token.ts'
import { userRoutes } from './identity/users.ts'
import { openApiRoute } from './openapi/openapi.ts'
import { healthRoutes } from './probes/health.ts'
import type { Route, RouteTable } from './route.ts'
import { accountRoutes } from './service/service.ts'
import { startPageRoutes } from './start-page.ts'
import { baseRoutes } from './v2/base.ts'
import { blobRoutes } from './v2/blobs.ts'
import { catalogRoutes } from './v2/catalog.ts'
import { manifestRoutes } from './v2/manifests.ts'
import { referrerRoutes } from './v2/referrers.ts'
import { scopedTokenRoutes } from './v2/scoped-token.ts'
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
  ...healthRoutes,
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
  ...catalogRoutes,
  ...scopedTokenRoutes,
  ...baseRoutes,
]

const routeTable: RouteTable = { registry: registryRoutes, service: serviceRoutes }
