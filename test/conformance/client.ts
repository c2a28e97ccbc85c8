// The wire and nothing else: requests as the official suite sends them, answers as they came.

/** One repository, seen through one mount of one registry, with one credential. */
export interface Repository {
  /** `http://127.0.0.1:41234`. */
  readonly origin: string
  /** What stands before `/v2/`: nothing, or `/api/2023-12-28`. */
  readonly mount: string
  /** The `Authorization` header; undefined for an anonymous caller. */
  readonly authorization: string | undefined
  readonly name: string
}

export interface Ask {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Send the body with `Transfer-Encoding: chunked`, so that its length is not announced. */
  readonly isStreamed?: boolean
}

export interface Reply {
  /** `PUT http://.../v2/...`, for messages. */
  readonly asked: string
  readonly method: string
  readonly url: URL
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array
}

export function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

/** Another repository of the same registry. */
export function sibling(repository: Repository, suffix: string): Repository {
  return { ...repository, name: `${repository.name}-${suffix}` }
}

/** The address of something in the repository: `blobs/sha256:...`, `tags/list`. */
export function addressOf(repository: Repository, path: string, query: Readonly<Record<string, string>> = {}): URL {
  return withQuery(new URL(`${repository.origin}${repository.mount}/v2/${repository.name}/${path}`), query)
}

/** Adds parameters and keeps those that the registry has put there. */
export function withQuery(address: URL, query: Readonly<Record<string, string>>): URL {
  const result = new URL(address)
  for (const [key, value] of Object.entries(query)) result.searchParams.set(key, value)
  return result
}

export async function send(repository: Repository, method: string, url: URL, ask: Ask = {}): Promise<Reply> {
  const headers = new Headers(ask.headers)
  if (repository.authorization !== undefined) headers.set('authorization', repository.authorization)
  const response = await fetch(url, { method, headers, redirect: 'manual', ...bodyOf(ask) })
  return {
    asked: `${method} ${url.href}`,
    method,
    url,
    status: response.status,
    headers: response.headers,
    body: new Uint8Array(await response.arrayBuffer()),
  }
}

function bodyOf({ body, isStreamed = false }: Ask): { body?: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> } {
  if (body === undefined) return {}
  const bytes = new Uint8Array(body)
  return { body: isStreamed ? streamOf(bytes) : bytes }
}

/** In two pieces, because a single one might be sent with its length after all. */
function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  const middle = Math.ceil(bytes.length / 2)
  const pieces = [bytes.subarray(0, middle), bytes.subarray(middle)].filter((piece) => piece.length > 0)
  return new ReadableStream({
    pull(controller) {
      const piece = pieces.shift()
      if (piece === undefined) controller.close()
      else controller.enqueue(piece)
    },
  })
}
