// One spoiled answer each: what a registry may get wrong, and the cases that must notice it.
import { isRecord } from './expectations.ts'

export interface Fault {
  /** Completes "a registry that ...". */
  readonly what: string
  /** Gives the answer to send instead, or undefined where this fault changes nothing. */
  readonly spoil: (request: Request, answer: Response) => Response | Promise<Response> | undefined
  /** The official cases that notice, each for this reason. */
  readonly noticedBy: readonly string[]
  readonly reason: RegExp
}

interface Change {
  readonly status?: number
  /** A header with an empty value is taken away. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | ReadableStream<Uint8Array> | null
}

export function changed(
  answer: Response,
  { status = answer.status, headers: changes = {}, body = answer.body }: Change,
): Response {
  const headers = new Headers(answer.headers)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') headers.delete(name)
    else headers.set(name, value)
  }
  return new Response(body, { status, headers })
}

export async function withJson(
  answer: Response,
  change: (body: Record<string, unknown>) => Record<string, unknown>,
): Promise<Response> {
  const before: unknown = await answer.json()
  const body = JSON.stringify(change(isRecord(before) ? before : {}))
  return changed(answer, { body, headers: { 'content-length': String(Buffer.byteLength(body)) } })
}

export function entriesOf(list: Record<string, unknown>): Record<string, unknown>[] {
  const entries = list['manifests']
  return Array.isArray(entries) ? entries.filter(isRecord) : []
}

export function pathOf(request: Request): string {
  return new URL(request.url).pathname
}

export function queryOf(request: Request): URLSearchParams {
  return new URL(request.url).searchParams
}
