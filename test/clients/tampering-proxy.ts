// Stands between clients and a server in bearer mode, and spoils what has to do with tokens: for runs that must fail.
import type { BerthProcess } from '../support/server/berth-process.ts'

export interface Tampering {
  /** Tokens are issued without any rights, whatever the client asks for. */
  readonly dropsScopes?: boolean
  /** Tokens come from another server, whose keys this one does not know. */
  readonly tokensFrom?: BerthProcess
  /** The challenge as the client gets to see it. */
  readonly toChallenge?: (challenge: string) => string
}

export interface Proxy {
  /** The server, at the proxy's address. */
  readonly berth: BerthProcess
  readonly tokenRequests: () => number
  stop(): Promise<void>
}

export function startTamperingProxy(berth: BerthProcess, tampering: Tampering): Proxy {
  let tokenRequests = 0
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      if (!url.pathname.endsWith('/_token')) return forward(request, url, berth, tampering, request.body)
      tokenRequests += 1
      const form = request.method === 'POST' ? new URLSearchParams(await request.text()) : undefined
      if (tampering.dropsScopes) for (const fields of [url.searchParams, form]) fields?.delete('scope')
      return forward(request, url, tampering.tokensFrom ?? berth, tampering, form?.toString() ?? null)
    },
  })
  const host = `127.0.0.1:${server.port}`
  return {
    berth: { ...berth, host, url: `http://${host}` },
    tokenRequests: () => tokenRequests,
    stop: () => server.stop(true),
  }
}

async function forward(
  request: Request,
  { pathname, search }: URL,
  target: BerthProcess,
  { toChallenge }: Tampering,
  body: ReadableStream<Uint8Array> | string | null,
): Promise<Response> {
  // The host stays as the client named it, so that the server's challenge leads back here.
  const headers = new Headers(request.headers)
  if (typeof body === 'string') headers.delete('content-length')
  const init = { method: request.method, headers, body, redirect: 'manual', decompress: false } as const
  const answer = await fetch(target.url + pathname + search, init)
  const own = new Headers(answer.headers)
  const challenge = own.get('www-authenticate')
  if (challenge !== null && toChallenge !== undefined) own.set('www-authenticate', toChallenge(challenge))
  return new Response(request.method === 'HEAD' ? null : answer.body, { status: answer.status, headers: own })
}
