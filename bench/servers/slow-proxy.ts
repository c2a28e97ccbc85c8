// The control of the benchmark with PostgreSQL and S3: a proxy in front of a registry. It wastes CPU time for each
// request and for each chunk. argv: the address of the registry.
import { announce } from './listening.ts'

const target = Bun.argv[2] ?? ''
const ballast = new Uint8Array(1024 * 1024)

/** Hashes this many MiB. */
function waste(times: number): void {
  for (let time = 0; time < times; time++) new Bun.CryptoHasher('sha256').update(ballast).digest()
}

function slowed(body: ReadableStream<Uint8Array> | null, timesPerMebibyte: number): ReadableStream<Uint8Array> | null {
  if (body === null) return null
  // Chunks are small. Bytes that are too few for a hash are counted for the next one.
  let owed = 0
  const wasting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      owed += (chunk.length / ballast.length) * timesPerMebibyte
      waste(Math.floor(owed))
      owed %= 1
      controller.enqueue(chunk)
    },
  })
  return body.pipeThrough(wasting)
}

/** The costs are far above those of docker-registry, and low enough for the control to end soon. */
const timesPerRequest = 30
const timesPerMebibyteDown = 25
const timesPerMebibyteUp = 110

async function pass(request: Request): Promise<Response> {
  waste(timesPerRequest)
  const { pathname, search } = new URL(request.url)
  const { method } = request
  const headers = new Headers(request.headers)
  headers.delete('host')
  const body = slowed(request.body, timesPerMebibyteUp)
  const answer = await fetch(`${target}${pathname}${search}`, { method, headers, body, redirect: 'manual' })
  return new Response(slowed(answer.body, timesPerMebibyteDown), { status: answer.status, headers: answer.headers })
}

announce(Bun.serve({ hostname: '127.0.0.1', port: 0, maxRequestBodySize: 2 ** 40, idleTimeout: 0, fetch: pass }))
