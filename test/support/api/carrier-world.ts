// A server that holds something of everything, and for each operation of the route table a request that succeeds there.
import { testAdminPassword, testApiKey } from '../basics/test-project.ts'
import type { MovedServer } from '../server/moved-server.ts'
import { digestOf, imageOf, indexOf, type Manifest } from './api-images.ts'
import { api, identity } from './api-server.ts'
import { exampleOf, type Operation, requestFor, type Stock } from './route-examples.ts'

/** A server, however it was started. */
export type AskedServer = Pick<MovedServer, 'url' | 'ask'>

export interface AdminSecrets {
  readonly apiKey: string
  readonly password: string
}

const testSecrets: AdminSecrets = { apiKey: testApiKey, password: testAdminPassword }

export interface PreparedRequest {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** What it answers a known caller. */
  readonly status: number
}

const json = { 'content-type': 'application/json' }
const repository = 'matrix/app'
let count = 0
const fresh = (what: string) => `${what}-${++count}`

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
    await world.#pushBlob('{}')
    await world.#pushManifest('v1', world.image)
    await world.must(201, 'POST', `${identity}/users`, { headers: json, body: '{"name":"matrix","roles":["reader"]}' })
    return world
  }

  /** Creates what the operation needs; gives the request. */
  async prepare(operation: Operation): Promise<PreparedRequest> {
    const { route } = operation
    const { body, ...request } = requestFor(operation, await this.#stockFor(operation))
    const isToken = route.pattern === '/_token' && this.challenge === 'bearer'
    return {
      ...request,
      ...(body === undefined ? {} : { body: String(body) }),
      status: isToken ? 200 : exampleOf(route).status,
    }
  }

  /** What the operation changes or removes is created for it alone. */
  async #stockFor({ route: { operationId, pattern }, mount }: Operation): Promise<Stock> {
    const stock = {
      repository,
      imageDigest: this.image.digest,
      spareDigest: digestOf('{}'),
      uploadId: pattern.endsWith('/blobs/uploads/{id}') ? await this.#startUpload(mount) : '',
      user: 'matrix',
      apiKeyName: fresh('doomed'),
      password: this.secrets.password,
    }
    if (operationId === 'deleteBlob') return { ...stock, spareDigest: await this.#pushBlob(fresh('doomed')) }
    if (operationId === 'deleteManifest') {
      const doomed = indexOf([], { annotations: { number: fresh('doomed') } })
      await this.#pushManifest(fresh('tag'), doomed)
      return { ...stock, reference: doomed.digest }
    }
    if (operationId === 'deleteApiKey') {
      const body = JSON.stringify({ name: stock.apiKeyName })
      await this.must(201, 'POST', `${identity}/users/matrix/keys`, { headers: json, body })
    }
    if (operationId === 'disableService') await this.must(200, 'POST', `${api}/enable`)
    return stock
  }

  /** As the administrator, who must get this answer. */
  async must(status: number, method: string, path: string, request: RequestInit = {}): Promise<Response> {
    const headers = { 'x-api-key': this.secrets.apiKey, ...request.headers }
    const answer = await this.server.ask(method, path, { ...request, headers })
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }

  async #pushBlob(content: string): Promise<string> {
    const digest = digestOf(content)
    await this.must(201, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digest}`, { body: content })
    return digest
  }

  async #pushManifest(tag: string, { bytes, mediaType }: Manifest): Promise<void> {
    const path = `/v2/${repository}/manifests/${tag}`
    await this.must(201, 'PUT', path, { headers: { 'content-type': mediaType }, body: bytes })
  }

  async #startUpload(mount: string): Promise<string> {
    const opened = await this.must(202, 'POST', `${mount}/${repository}/blobs/uploads/`)
    return opened.headers.get('location')?.split('/').at(-1) ?? ''
  }
}
