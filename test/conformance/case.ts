// A case of the official suite, and the repository that it uses.
export interface Case {
  /** A sentence that says what the registry does. */
  readonly title: string
  /** The path of the case in the results of the official suite. */
  readonly official: string
  /** Throws if the registry does anything else. The repository is a new one. */
  readonly check: (repository: Repository) => Promise<void>
}

/** One repository of one registry, seen through one mount, with one credential. */
export interface Repository {
  readonly url: string
  /** What stands before `/v2/`: nothing, or `/api/2023-12-28`. */
  readonly mount: string
  readonly name: string
  /** The header `Authorization`; undefined for an anonymous caller. */
  readonly authorization: string | undefined
  /** Stands between the registry and the check, and may replace the answer. */
  readonly spoil?: (asked: Asked, answer: Reply) => Change | undefined
}

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly isStreamed: boolean
}

export interface Reply {
  readonly method: string
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
}

/** Another status or body; headers with other values, or removed with the value ''. */
export interface Change {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
}

export interface Question {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
}

/** Sends a request to a path that begins with `/`, such as a `Location`, or to a path within the repository. */
export async function ask(
  repository: Repository,
  method: string,
  path: string,
  question: Question = {},
): Promise<Reply> {
  const { url, mount, name, authorization, spoil } = repository
  const whole = path.startsWith('/') ? path : `${mount}/v2/${name}/${path}`
  const headers = { ...question.headers, ...(authorization === undefined ? {} : { authorization }) }
  const answer = await fetch(url + whole, { method, redirect: 'manual', ...question, headers })
  const reply = { method, status: answer.status, headers: answer.headers, bytes: await answer.bytes() }
  const asked = { method, path: whole, headers, isStreamed: question.body instanceof ReadableStream }
  return changed(reply, spoil?.(asked, reply) ?? {})
}

function changed(reply: Reply, { status = reply.status, headers: changes = {}, json }: Change): Reply {
  const bytes = json === undefined ? reply.bytes : new TextEncoder().encode(JSON.stringify(json))
  const headers = new Headers(reply.headers)
  if (json !== undefined) headers.set('content-length', String(bytes.length))
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') headers.delete(name)
    else headers.set(name, value)
  }
  return { ...reply, status, headers, bytes }
}

/** The name of a repository that no other case has. */
export function repositoryName(prefix: string, { title, official }: Case): string {
  const slug = `${official}-${title}`.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return `conformance/${prefix}/${slug.slice(0, 160).replace(/-$/, '')}`
}
