// Requests whose bodies stop in the middle, arrive too slowly, or meet another request at the same upload.
import type { ApiServer } from '../support/api/api-server.ts'
import { beginRequest, type SlowRequest } from '../support/clients/slow-request.ts'
import type { Provocation, Refused } from './provocation.ts'

const pauseMs = 50
const attemptsMax = 200
const piece = new TextEncoder().encode('only a few bytes')

/** Opens a request that announces more bytes than it sends. */
async function begin(server: ApiServer, method: string, path: string): Promise<SlowRequest> {
  const slow = await beginRequest(server, method, path, 'content-length', 1_000, 'application/json')
  await slow.send(piece)
  return slow
}

async function refusalOf(slow: SlowRequest): Promise<Refused> {
  const answer = await slow.answer()
  if (answer === undefined) throw new Error('the connection ended without an answer')
  return { status: answer.status, headers: new Headers([...answer.headers]), text: answer.body }
}

/** Sends a few bytes and then nothing, and waits for the refusal. */
export function slowBody(server: ApiServer, method: string, path: string): Provocation {
  return { method, path, act: async () => refusalOf(await begin(server, method, path)) }
}

/** A request that sends no more bytes, while its client sends another one: the first request gets the refusal. */
export function interruptedUpload(server: ApiServer, path: string): Provocation {
  return {
    method: 'PATCH',
    path,
    async act() {
      let refused: Refused | undefined
      void refusalOf(await begin(server, 'PATCH', path)).then((refusal) => {
        refused = refusal
      })
      for (let attempt = 0; attempt < attemptsMax && refused === undefined; attempt += 1) {
        await Bun.sleep(pauseMs)
        await server.ask('PATCH', path)
      }
      if (refused === undefined) throw new Error('the first request got no answer')
      return refused
    },
  }
}

/** A request that goes on sending, and another one at the same upload: the other one gets the refusal. */
export function occupiedUpload(server: ApiServer, path: string): Provocation {
  return {
    method: 'PATCH',
    path,
    async act() {
      const busy = await begin(server, 'PATCH', path)
      const sending = setInterval(() => void busy.send(new Uint8Array(1)), pauseMs)
      try {
        for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
          await Bun.sleep(pauseMs)
          const reply = await server.ask('PATCH', path)
          if (reply.status !== 202) return reply
        }
        throw new Error('two requests wrote to one upload')
      } finally {
        clearInterval(sending)
        busy.vanish()
      }
    },
  }
}
