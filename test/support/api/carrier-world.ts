// Every operation of the route table, and for each a request that really reaches what it does.
import type { Route } from '../../../src/http/route.ts'
import { registryRoutes, serviceRoutes } from '../../../src/http/routes.ts'
import { testAdminPassword, testApiKey } from '../basics/test-project.ts'
import type { MovedServer } from '../server/moved-server.ts'
import { digestOf, imageOf, indexOf, type Manifest } from './api-images.ts'
import { api, identity, mounts } from './api-server.ts'

/** A server, however it was started. */
export type AskedServer = Pick<MovedServer, 'url' | 'ask'>

export interface AdminSecrets {
  readonly apiKey: string
  readonly password: string
}

const testSecrets: AdminSecrets = { apiKey: testApiKey, password: testAdminPassword }

/** A row of the table at one of its addresses, by one of its methods. */
export interface Operation {
  readonly route: Route
  readonly method: string
  /** Undefined for routes at fixed addresses. */
  readonly mount: string | undefined
  readonly name: string
}

export const operations: readonly Operation[] = [
  ...serviceRoutes.flatMap((route) => spell(route, undefined)),
  ...mounts.flatMap((mount) => registryRoutes.flatMap((route) => spell(route, mount))),
]

function spell(route: Route, mount: string | undefined): Operation[] {
  const methods = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]
  return methods.map((method) => ({ route, method, mount, name: `${method} ${mount ?? ''}${route.pattern}` }))
}

export interface Deed {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** What it answers a known caller. */
  readonly status: number
}

/** Makes what the deed is about. */
type Recipe = (world: CarrierWorld, mount: string) => Promise<Deed>

const json = { 'content-type': 'application/json' }
const repository = 'matrix/app'
let count = 0
const fresh = (what: string) => `${what}-${++count}`

/** A server that holds something of everything. */
export class CarrierWorld {
  readonly server: AskedServer
  readonly challenge: 'basic' | 'bearer'
  readonly secrets: AdminSecrets
  readonly image: Manifest = imageOf()

  private constructor(server: AskedServer, challenge: 'basic' | 'bearer', secrets: AdminSecrets) {
    this.server = server
    this.challenge = challenge
    this.secrets = secrets
  }

  static async make(
    server: AskedServer,
    challenge: 'basic' | 'bearer',
    secrets: AdminSecrets = testSecrets,
  ): Promise<CarrierWorld> {
    const world = new CarrierWorld(server, challenge, secrets)
    await world.pushBlob('{}')
    await world.pushManifest('v1', world.image)
    await world.must(201, 'POST', `${identity}/users`, { headers: json, body: '{"name":"matrix","roles":["reader"]}' })
    return world
  }

  /** Prepares what the operation needs; gives the request. */
  prepare({ route, mount }: Operation): Promise<Deed> {
    const recipe = recipes[route.operationId]
    if (recipe === undefined) throw new Error(`nobody knows how to ask for ${route.operationId}`)
    return recipe(this, mount ?? '')
  }

  /** As the administrator, who must get this answer. */
  async must(status: number, method: string, path: string, request: RequestInit = {}): Promise<Response> {
    const headers = { 'x-api-key': this.secrets.apiKey, ...request.headers }
    const answer = await this.server.ask(method, path, { ...request, headers })
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }

  async pushBlob(content: string): Promise<string> {
    const digest = digestOf(content)
    await this.must(201, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digest}`, { body: content })
    return digest
  }

  async pushManifest(tag: string, { bytes, mediaType }: Manifest): Promise<void> {
    const path = `/v2/${repository}/manifests/${tag}`
    await this.must(201, 'PUT', path, { headers: { 'content-type': mediaType }, body: bytes })
  }

  async startUpload(mount: string): Promise<string> {
    const opened = await this.must(202, 'POST', `${mount}/${repository}/blobs/uploads/`)
    return opened.headers.get('location') ?? ''
  }
}

const at =
  (path: string, status = 200): Recipe =>
  async (_, mount) => ({ path: mount + path, status })

const onUpload =
  (status: number, rest: Partial<Deed> = {}, query = ''): Recipe =>
  async (world, mount) => ({ path: (await world.startUpload(mount)) + query, status, ...rest })

const formType = { 'content-type': 'application/x-www-form-urlencoded' }
const scope = `scope=repository:${repository}:pull`

export const recipes: Readonly<Record<string, Recipe>> = {
  getStartPage: at('/'),
  getHealth: at('/healthz'),
  getReadiness: at('/readyz'),
  getOpenApi: at(`${api}/openapi.json`),
  postToken: async ({ secrets }) => ({
    path: `${identity}/token/auth`,
    headers: json,
    body: JSON.stringify({ username: 'admin', password: secrets.password }),
    status: 200,
  }),
  getMe: at(`${identity}/me`),
  getKeySet: at(`${identity}/jwks.json`),
  getUsers: at(`${identity}/users`),
  postUser: async () => ({
    path: `${identity}/users`,
    headers: json,
    body: JSON.stringify({ name: fresh('user') }),
    status: 201,
  }),
  getUser: at(`${identity}/users/matrix`),
  patchUser: async () => ({
    path: `${identity}/users/matrix`,
    headers: json,
    body: '{"roles":["writer"]}',
    status: 200,
  }),
  getApiKeys: at(`${identity}/users/matrix/keys`),
  postApiKey: async () => ({
    path: `${identity}/users/matrix/keys`,
    headers: json,
    body: JSON.stringify({ name: fresh('key') }),
    status: 201,
  }),
  deleteApiKey: async (world) => {
    const name = fresh('doomed')
    await world.must(201, 'POST', `${identity}/users/matrix/keys`, { headers: json, body: JSON.stringify({ name }) })
    return { path: `${identity}/users/matrix/keys/${name}`, status: 204 }
  },
  enableService: at(`${api}/enable`),
  disableService: async (world) => {
    await world.must(200, 'POST', `${api}/enable`)
    return { path: `${api}/disable`, status: 200 }
  },
  getStats: at(`${api}/stats`),
  getImageTagManifest: at(`/${repository}/manifests/v1`),
  putImageTagManifest: async (world, mount) => ({
    path: `${mount}/${repository}/manifests/${fresh('tag')}`,
    headers: { 'content-type': world.image.mediaType },
    body: world.image.bytes,
    status: 201,
  }),
  deleteManifest: async (world, mount) => {
    const doomed = indexOf([], { annotations: { number: fresh('doomed') } })
    await world.pushManifest(fresh('tag'), doomed)
    return { path: `${mount}/${repository}/manifests/${doomed.digest}`, status: 202 }
  },
  postUpload: at(`/${repository}/blobs/uploads/`, 202),
  postUploadWithoutSlash: at(`/${repository}/blobs/uploads`, 202),
  getBlob: at(`/${repository}/blobs/${digestOf('{}')}`),
  deleteBlob: async (world, mount) => ({
    path: `${mount}/${repository}/blobs/${await world.pushBlob(fresh('doomed'))}`,
    status: 202,
  }),
  patchUpload: onUpload(202, { body: 'bytes' }),
  putUpload: onUpload(201, { body: 'bytes' }, `?digest=${digestOf('bytes')}`),
  getUpload: onUpload(204),
  deleteUpload: onUpload(204),
  getImageTagsList: at(`/${repository}/tags/list`),
  getImageDigestReferrers: at(`/${repository}/referrers/${digestOf('{}')}`),
  getCatalog: at('/_catalog'),
  getScopedToken: async ({ challenge }, mount) => ({
    path: `${mount}/_token?${scope}`,
    status: challenge === 'bearer' ? 200 : 404,
  }),
  postScopedToken: async ({ challenge }, mount) => ({
    path: `${mount}/_token`,
    headers: formType,
    // Without a user in the form, the carriers decide.
    body: `grant_type=password&${scope}`,
    status: challenge === 'bearer' ? 200 : 404,
  }),
  checkAuthentication: at('/'),
}
