// The minimum for a `Bun.serve` with a handler: it returns the same manifest as Berth, which it knows in advance.
// argv: the answer as a JSON file.
import { announce } from './listening.ts'

export interface ConstantAnswer {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const answer: ConstantAnswer = await Bun.file(Bun.argv[2] ?? '').json()
const { headers, body } = answer

announce(Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(body, { headers }) }))
