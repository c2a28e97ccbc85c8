// Requests whose bodies stop in the middle, or crawl, or meet another on the same upload.

import type { ApiServer } from '../support/api/api-server.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { openRaw, type RawAnswer, type RawConnection } from '../support/clients/raw-socket.ts'
import type { Provocation, Refused } from './provocation.ts'

const pauseMs = 50
const attemptsMax = 200

/** Opens a request that announces more bytes than it sends. */
async function begin(server: ApiServer, method: string, path: string): Promise<RawConnection> {
  const connection = await openRaw(server.port)
  const lines = [
    'Host: 127.0.0.1',
    `X-API-KEY: ${testApiKey}`,
    'Content-Type: application/json',
    'Content-Length: 1000',
  ]
  connection.send([`${method} ${path} HTTP/1.1`, ...lines, '', 'only a few bytes'].join('\r\n'))
  return connection
}

function toRefused(reply: RawAnswer): Refused {
  return {
    status: reply.status,
    headers: new Headers(reply.lines.map(([name, value]) => [name, value])),
    text: reply.body,
  }
}

/** Sends a little and then nothing, and waits to be told so. */
export function slowBody(server: ApiServer, method: string, path: string): Provocation {
  return { method, path, act: async () => toRefused(await (await begin(server, method, path)).answer()) }
}

/** A sender that fell silent, and whose client comes again on another connection: the silent one is told. */
export function interruptedUpload(server: ApiServer, path: string): Provocation {
  return {
    method: 'PATCH',
    path,
    async act() {
      const silent = await begin(server, 'PATCH', path)
      let refused: Refused | undefined
      void silent.answer().then((reply) => {
        refused = toRefused(reply)
      })
      for (let attempt = 0; attempt < attemptsMax && refused === undefined; attempt += 1) {
        await Bun.sleep(pauseMs)
        await server.ask('PATCH', path)
      }
      if (refused === undefined) throw new Error('the silent sender was never told')
      return refused
    },
  }
}

/** A sender that goes on sending, and another that wants the same upload. */
export function occupiedUpload(server: ApiServer, path: string): Provocation {
  return {
    method: 'PATCH',
    path,
    async act() {
      const busy = await begin(server, 'PATCH', path)
      const sending = setInterval(() => busy.send('.'), pauseMs)
      try {
        for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
          await Bun.sleep(pauseMs)
          const reply = await server.ask('PATCH', path)
          if (reply.status !== 202) return reply
        }
        throw new Error('two senders wrote to one upload')
      } finally {
        clearInterval(sending)
        busy.close()
      }
    },
  }
}
