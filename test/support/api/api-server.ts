// A server in this process, and its answers read whole. Every answer is checked against the OpenAPI document.
import { startTestServer } from '../server/test-server.ts'
import { findContradictions, type ReadAnswer } from './documented-answer.ts'

export const api = '/api/2023-12-28'
export const identity = '/api/2021-02-21'
/** Where the registry interface answers. */
export const mounts = ['/v2', `${api}/v2`] as const

export interface Question {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>
  /** An API key in place of the administrator's, or `none`: exactly the given headers. */
  readonly key?: string
}

export interface Reply extends ReadAnswer {
  /** The body, parsed; it must be JSON. */
  json<T = unknown>(): T
}

export interface ApiServer {
  readonly url: string
  readonly port: number
  readonly dataDir: string
  ask(method: string, path: string, question?: Question): Promise<Reply>
  stop(): Promise<void>
}

export async function startApi(settings: Readonly<Record<string, string>> = {}): Promise<ApiServer> {
  const server = await startTestServer(settings)
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    dataDir: server.dataDir,
    stop: server.stop,
    async ask(method, path, { headers = {}, body, key } = {}) {
      const init = { method, headers: { ...headers }, ...(body === undefined ? {} : { body }) }
      if (key !== undefined && key !== 'none') Object.assign(init.headers, { 'x-api-key': key })
      const response = key === undefined ? await server.fetch(path, init) : await server.fetchWithoutKey(path, init)
      const reply = await readReply(response)
      const faults = findContradictions(method, path, reply)
      if (faults.length > 0) throw new Error(`${method} ${path.slice(0, 200)}\n  ${faults.join('\n  ')}`)
      return reply
    },
  }
}

export async function readReply(response: Response): Promise<Reply> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  const text = new TextDecoder().decode(bytes)
  return { status: response.status, headers: response.headers, bytes, text, json: <T>() => JSON.parse(text) as T }
}

/** The names of an answer's headers, without those that every answer has. */
export function ownHeaders({ headers }: Reply): readonly string[] {
  const usual = new Set(['date', 'docker-distribution-api-version', 'x-content-type-options', 'x-request-id'])
  return [...headers.keys()].filter((name) => !usual.has(name)).sort()
}

/** The status and the first code of a refusal in the registry interface, such as `404 BLOB_UNKNOWN`. */
export function verdictOf(reply: Reply): string {
  const { errors } = reply.json<{ errors: readonly { code: string }[] }>()
  return `${reply.status} ${errors[0]?.code}`
}
