// A server that holds something worth losing, and a look whether all of it is still there.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ociIndex, ociManifest } from '../../../src/oci/media-types.ts'
import { digestOf, generatedBytes } from '../basics/generated-bytes.ts'
import { testApiKey } from '../basics/test-project.ts'
import { type RawExchange, sendRaw } from '../clients/raw-socket.ts'
import { basic, startTestServer, type TestServer } from './test-server.ts'

export const repository = 'kept/app'
export const authorization = `Authorization: ${basic('apikey', testApiKey)}`
export const blob = generatedBytes(100_000, 42)
export const blobDigest = digestOf(blob)
const config = new TextEncoder().encode('{"kept":true}')
export const configDigest = digestOf(config)

const uploadedSoFar = 'hello'

export const configDescriptor = {
  mediaType: 'application/vnd.oci.image.config.v1+json',
  digest: configDigest,
  size: config.length,
}

/** A manifest whose content is all there. */
export function imageText(rest: Readonly<Record<string, unknown>> = {}): string {
  const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: blobDigest, size: blob.length }
  return JSON.stringify({
    schemaVersion: 2,
    mediaType: ociManifest,
    config: configDescriptor,
    layers: [layer],
    ...rest,
  })
}

// Odd white space: what comes back must be these bytes and not the same value written anew.
const manifest = imageText().replaceAll(',', ' ,\n\t')
export const manifestDigest = digestOf(manifest)
const index = JSON.stringify({
  schemaVersion: 2,
  mediaType: ociIndex,
  manifests: [{ mediaType: ociManifest, digest: manifestDigest, size: manifest.length }],
})

export type RequestBody = NonNullable<RequestInit['body']>

export interface ErrorBody {
  readonly errors?: readonly { readonly code: string; readonly message: string }[]
  readonly msg: string
}

/** Started before the tests of a file and stopped after them. */
export class GuardedServer {
  #server: TestServer | undefined
  #upload = ''

  /** `settings` as for `startTestServer`. Call at the top of a test file. */
  constructor(settings: Readonly<Record<string, string>> = {}) {
    beforeAll(async () => {
      this.#server = await startTestServer(settings)
      await this.#fill()
    })
    afterAll(async () => {
      await this.#server?.stop()
    })
  }

  get server(): TestServer {
    if (this.#server === undefined) throw new Error('the server was not started yet')
    return this.#server
  }

  get port(): number {
    return Number(new URL(this.server.url).port)
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return this.server.fetch(path, init)
  }

  /** One request by hand, the last of its connection. `lines` come behind Host and credentials. */
  ask(method: string, target: string, lines: readonly string[] = [], body = ''): Promise<RawExchange> {
    return sendRaw(this.port, this.request(method, target, ['Connection: close', ...lines], body))
  }

  request(method: string, target: string, lines: readonly string[] = [], body = ''): string {
    return [`${method} ${target} HTTP/1.1`, 'Host: 127.0.0.1', authorization, ...lines, '', body].join('\r\n')
  }

  /** Opens an upload; gives its path. */
  async startUpload(name = repository): Promise<string> {
    const answer = await this.fetch(`/v2/${name}/blobs/uploads/`, { method: 'POST' })
    expect(answer.status).toBe(202)
    return answer.headers.get('location') ?? ''
  }

  async receivedRange(upload: string): Promise<string | null> {
    return (await this.fetch(upload)).headers.get('range')
  }

  async #fill(): Promise<void> {
    const created: Response[] = []
    for (const content of [blob, config]) {
      const path = `/v2/${repository}/blobs/uploads/?digest=${digestOf(content)}`
      created.push(await this.fetch(path, { method: 'POST', body: content }))
    }
    created.push(await this.putManifest('kept', manifest), await this.putManifest('index', index, ociIndex))
    this.#upload = await this.startUpload()
    const chunk = await this.fetch(this.#upload, { method: 'PATCH', body: uploadedSoFar })
    expect([...created, chunk].map(({ status }) => status)).toEqual([201, 201, 201, 201, 202])
  }

  putManifest(reference: string, body: RequestBody, mediaType = ociManifest, name = repository): Promise<Response> {
    return this.fetch(`/v2/${name}/manifests/${reference}`, {
      method: 'PUT',
      body,
      headers: { 'content-type': mediaType },
    })
  }

  /** Byte for byte, by every name, and nothing beside it but what `others` names. */
  async checkNothingLost(others: readonly string[] = []): Promise<void> {
    const text = async (path: string) => (await this.fetch(path)).text()
    const stored = new Uint8Array(await (await this.fetch(`/v2/${repository}/blobs/${blobDigest}`)).arrayBuffer())
    expect(digestOf(stored)).toBe(blobDigest)
    expect(await text(`/v2/${repository}/blobs/${configDigest}`)).toBe(new TextDecoder().decode(config))
    expect(await text(`/v2/${repository}/manifests/kept`)).toBe(manifest)
    expect(await text(`/v2/${repository}/manifests/${manifestDigest}`)).toBe(manifest)
    expect(await text(`/v2/${repository}/manifests/index`)).toBe(index)
    expect(JSON.parse(await text(`/v2/${repository}/tags/list`)).tags).toEqual(['index', 'kept'])
    expect(JSON.parse(await text('/v2/_catalog')).repositories).toEqual([repository, ...others].toSorted())
    expect(await this.receivedRange(this.#upload)).toBe(`0-${uploadedSoFar.length - 1}`)
    expect((await this.fetch('/readyz')).status).toBe(200)
  }

  /** The last test of a file. */
  losesNothing(...others: readonly string[]): void {
    test('loses nothing', () => this.checkNothingLost(others))
  }
}

/** The status and the code of the specification, or of other answers the status alone. */
export async function verdictOf(answer: Response): Promise<string> {
  const text = await answer.text()
  return `${answer.status} ${codeIn(text)}`.trim()
}

export function verdictOfRaw({ answers }: RawExchange): string {
  return answers.map(({ status, body }) => `${status} ${codeIn(body)}`.trim()).join(', ')
}

function codeIn(text: string): string {
  try {
    const { errors }: ErrorBody = JSON.parse(text)
    return errors?.[0]?.code ?? ''
  } catch {
    return ''
  }
}
