// A server in front of another that changes requests on their way: how a test finds out what a wrong server would look like.

export interface Front {
  readonly port: number
  readonly url: string
  stop(): void
}

/**
 * Before a request goes on (`status` 0), and again after its answer, it may be replaced: then the answer to the new one
 * counts.
 */
export function startFront(target: string, rewrite: (request: Request, status: number) => Request | undefined): Front {
  const ask = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    const body = request.method === 'GET' || request.method === 'HEAD' ? undefined : await request.clone().bytes()
    const { method, headers } = request
    return fetch(target + pathname + search, { method, headers, redirect: 'manual', ...(body ? { body } : {}) })
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const first = rewrite(request, 0) ?? request
      const answer = await ask(first)
      const second = rewrite(first, answer.status)
      return second === undefined ? answer : ask(second)
    },
  })
  return { port: server.port ?? 0, url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) }
}
