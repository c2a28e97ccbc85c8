// The least a `Bun.serve` with a handler can do: the manifest that Berth answers, known before the request came.
// argv: the answer as a JSON file; `--static` hands the response to Bun's router, so that no JavaScript runs at all.
import { announce } from './listening.ts'

export interface ConstantAnswer {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const answer: ConstantAnswer = await Bun.file(Bun.argv[2] ?? '').json()
const { headers, body } = answer
const address = { hostname: '127.0.0.1', port: 0 } as const

announce(
  Bun.argv.includes('--static')
    ? Bun.serve({ ...address, routes: { '/*': new Response(body, { headers }) } })
    : Bun.serve({ ...address, fetch: () => new Response(body, { headers }) }),
)
