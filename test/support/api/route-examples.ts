// An example of every operation of the route table, each as it would succeed. A route without one ends the test.
import type { Route } from '../../../src/http/route.ts'
import { registryRoutes, serviceRoutes } from '../../../src/http/routes.ts'
import { testAdminPassword } from '../basics/test-project.ts'
import { digestOf, imageOf, pushApiImage, pushBlob, startUpload } from './api-images.ts'
import { type ApiServer, mounts, type Question, type Reply } from './api-server.ts'

/** One way to ask for a route: every GET is asked for by HEAD too, and registry routes in both mounts. */
export interface Operation {
  readonly title: string
  readonly route: Route
  readonly method: string
  /** Where the registry interface is asked; empty for routes elsewhere. */
  readonly mount: string
}

export const operations: readonly Operation[] = [
  ...serviceRoutes.map((route) => ({ route, mount: '' })),
  ...mounts.flatMap((mount) => registryRoutes.map((route) => ({ route, mount }))),
].flatMap(({ route, mount }) =>
  (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]).map((method) => ({
    title: `${method} ${mount}${route.pattern}`,
    route,
    method,
    mount,
  })),
)

/** What a repository and the users around it have, for requests to name. */
export interface Stock {
  readonly repository: string
  readonly imageDigest: string
  /** Of a blob that no manifest names. */
  readonly spareDigest: string
  readonly uploadId: string
  /** Of the account. */
  readonly user: string
  readonly apiKeyName: string
  /** Of the manifest that requests read and delete; `v1` where it is not given. */
  readonly reference?: string
  /** Of the user `admin`. */
  readonly password?: string
}

interface Example {
  readonly status: number
  readonly values?: (stock: Stock) => Readonly<Record<string, string>>
  readonly query?: (stock: Stock) => string
  readonly question?: (stock: Stock) => Question
}

const json = (body: unknown): Question => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})
const lastBytes = 'the last bytes'
const onUpload = ({ uploadId }: Stock) => ({ id: uploadId })
const onReference = ({ reference = 'v1' }: Stock) => ({ reference })
const onNoWebhook = () => ({ webhook: 'none', delivery: '1' })
const onTag = ({ reference = 'v1' }: Stock) => ({ tag: reference })
const scopeOf = ({ repository }: Stock) => `scope=repository:${repository}:pull`
const onUser = ({ user }: Stock) => ({ user })
const freshImage = imageOf({ annotations: { fresh: 'yes' } })

const registryExamples: Readonly<Record<string, Example>> = {
  checkAuthentication: { status: 200 },
  getCatalog: { status: 200 },
  // There are no tokens while Basic is the challenge.
  getScopedToken: { status: 404, query: (stock) => `?${scopeOf(stock)}` },
  postScopedToken: {
    status: 404,
    question: (stock) => ({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      // Without a user in the form, the carriers of credentials decide.
      body: `grant_type=password&${scopeOf(stock)}`,
    }),
  },
  getImageTagManifest: { status: 200, values: onReference },
  putImageTagManifest: {
    status: 201,
    values: () => ({ reference: 'fresh' }),
    question: () => ({ headers: { 'content-type': freshImage.mediaType }, body: freshImage.bytes }),
  },
  deleteManifest: { status: 202, values: onReference },
  getImageTagsList: { status: 200 },
  getImageDigestReferrers: { status: 200, values: ({ imageDigest }) => ({ digest: imageDigest }) },
  getBlob: { status: 200, values: ({ spareDigest }) => ({ digest: spareDigest }) },
  deleteBlob: { status: 202, values: ({ spareDigest }) => ({ digest: spareDigest }) },
  postUpload: { status: 202 },
  postUploadWithoutSlash: { status: 202 },
  getUpload: { status: 204, values: onUpload },
  deleteUpload: { status: 204, values: onUpload },
  patchUpload: { status: 202, values: onUpload, question: () => ({ body: 'some bytes' }) },
  putUpload: {
    status: 201,
    values: onUpload,
    query: () => `?digest=${digestOf(lastBytes)}`,
    question: () => ({ body: lastBytes }),
  },
}

const serviceExamples: Readonly<Record<string, Example>> = {
  getStartPage: { status: 200 },
  getHealth: { status: 200 },
  getReadiness: { status: 200 },
  getOpenApi: { status: 200 },
  getKeySet: { status: 200 },
  postToken: {
    status: 200,
    question: ({ password = testAdminPassword }) => json({ username: 'admin', password }),
  },
  getMe: { status: 200 },
  getUsers: { status: 200 },
  postUser: { status: 201, question: () => json({ name: `made-${crypto.randomUUID()}`, roles: [] }) },
  getUser: { status: 200, values: onUser },
  patchUser: { status: 200, values: onUser, question: () => json({ disabled: false }) },
  getApiKeys: { status: 200, values: onUser },
  postApiKey: { status: 201, values: onUser, question: () => json({ name: `made-${crypto.randomUUID()}` }) },
  deleteApiKey: { status: 204, values: ({ user, apiKeyName }) => ({ user, key: apiKeyName }) },
  enableService: { status: 200 },
  disableService: { status: 200 },
  getStats: { status: 200 },
  getTag: { status: 200, values: onTag },
  getTagHistory: { status: 200, values: onTag },
  getUntaggedManifests: { status: 200 },
  getRepositories: { status: 200 },
  getRepository: { status: 200 },
  getStorage: { status: 200 },
  getQuota: { status: 200 },
  getUploads: { status: 200 },
  getImmutableTags: { status: 200 },
  putImmutableTags: { status: 200, question: () => json({ rules: [] }) },
  deleteImmutableTags: { status: 204 },
  getAudit: { status: 200 },
  deleteTag: { status: 200, values: onTag, query: () => '?dryRun=true' },
  deleteTags: { status: 200, query: () => '?match=v*&dryRun=true' },
  deleteImage: {
    status: 200,
    values: ({ imageDigest }) => ({ digest: imageDigest }),
    query: () => '?dryRun=true',
  },
  deleteRepository: { status: 200, query: () => '?dryRun=true' },
  getDeletedManifests: { status: 200 },
  getImage: { status: 200, values: ({ imageDigest }) => ({ digest: imageDigest }) },
  // The stock has no deleted manifest.
  undeleteManifest: { status: 404, values: ({ imageDigest }) => ({ digest: imageDigest }) },
  undeleteRepository: { status: 200 },
  purgeDeletedManifest: { status: 404, values: ({ imageDigest }) => ({ digest: imageDigest }) },
  getEvents: { status: 200 },
  getWebhooks: { status: 200 },
  // The number of webhooks is limited, so these requests end behind the check of rights.
  postWebhook: { status: 400, question: () => json({}) },
  getWebhook: { status: 404, values: onNoWebhook },
  putWebhook: { status: 404, values: onNoWebhook, question: () => json({ url: 'https://ci.example.com/' }) },
  deleteWebhook: { status: 404, values: onNoWebhook },
  postWebhookTest: { status: 404, values: onNoWebhook },
  getWebhookDeliveries: { status: 404, values: onNoWebhook },
  postWebhookRedelivery: { status: 404, values: onNoWebhook },
  getRetention: { status: 200 },
  putRetention: { status: 200, question: () => json({ rules: [] }) },
  deleteRetention: { status: 204 },
  getRetentionPlan: { status: 200 },
  postRetentionPlan: { status: 200, question: () => json({ rules: [] }) },
  runRetention: { status: 200 },
  restoreTag: { status: 200, values: onTag, question: ({ imageDigest }) => json({ digest: imageDigest }) },
}

export function exampleOf({ operationId }: Route): Example {
  const example = registryExamples[operationId] ?? serviceExamples[operationId]
  if (example === undefined) throw new Error(`there is no example of ${operationId} in route-examples.ts`)
  return example
}

/** The request for the operation that succeeds when all of the stock is there. */
export function requestFor({ route, mount }: Operation, stock: Stock): { readonly path: string } & Question {
  const { values, query, question } = exampleOf(route)
  const all: Readonly<Record<string, string>> = { name: stock.repository, ...values?.(stock) }
  const path = route.pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = all[name]
    if (value === undefined) throw new Error(`the example of ${route.operationId} has no ${name}`)
    return value
  })
  return { path: mount + path + (query?.(stock) ?? ''), ...question?.(stock) }
}

export function askFor(server: ApiServer, operation: Operation, stock: Stock): Promise<Reply> {
  const { path, ...question } = requestFor(operation, stock)
  return server.ask(operation.method, path, question)
}

/** Fills a repository. The caller must be allowed to push, and the user and the key must exist. */
export async function fillStock(
  server: ApiServer,
  repository: string,
  { user, apiKeyName }: Pick<Stock, 'user' | 'apiKeyName'> = { user: 'nobody', apiKeyName: 'none' },
): Promise<Stock> {
  const { digest } = await pushApiImage(server, repository, 'v1', { layers: ['a layer'] })
  return {
    repository,
    imageDigest: digest,
    spareDigest: await pushBlob(server, repository, 'a spare blob'),
    uploadId: (await startUpload(server, repository)).split('/').at(-1) ?? '',
    user,
    apiKeyName,
  }
}

/** The names of a stock of which nothing is there. */
export function emptyStock(repository: string, user = 'nobody'): Stock {
  return {
    repository,
    imageDigest: imageOf({ layers: ['a layer'] }).digest,
    spareDigest: digestOf('a spare blob'),
    uploadId: crypto.randomUUID(),
    user,
    apiKeyName: 'none',
  }
}
