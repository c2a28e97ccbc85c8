import { describe, expect, test } from 'bun:test'
import type { Exchange, HttpSettings } from '../../../src/http/exchange.ts'
import { announcedLength, openBody, readAtMost } from '../../../src/http/request-body.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import { errorOf, refusalOf } from '../../support/basics/outcomes.ts'

const settings: HttpSettings = {
  publicUrl: undefined,
  trustedProxies: [],
  challenge: 'basic',
  hasRootMount: true,
  authUrl: undefined,
  serviceName: 'Berth',
  version: '1',
  docsUrl: undefined,
  bodyBytesPerSecondMin: 1,
  bodyWindowMs: 60_000,
}
const tooLarge = () => new RegistryRefusal('manifest-too-large')

function request(chunks: readonly string[], headers: Readonly<Record<string, string>> = {}): Request {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Buffer.from(chunk))
      controller.close()
    },
  })
  return new Request('http://h/', { method: 'PUT', body, headers })
}

/** As much of an exchange as reading a body takes; counts how often the body was opened. */
function exchangeOf(own: Request) {
  const opened = { times: 0 }
  const body = () => {
    opened.times += 1
    return openBody(own, settings)
  }
  return { opened, exchange: { request: own, body, reserve: async () => undefined } as Partial<Exchange> as Exchange }
}

async function readText(own: Request, max: number): Promise<string> {
  return new TextDecoder().decode(await readAtMost(exchangeOf(own).exchange, max, tooLarge))
}

describe('a small body', () => {
  test('comes whole, in one chunk, in many, or in none', async () => {
    expect(await readText(request(['abc']), 3)).toBe('abc')
    expect(await readText(request(['a', '', 'b', 'c']), 3)).toBe('abc')
    expect(await readText(request([]), 3)).toBe('')
    expect(await readText(new Request('http://h/', { method: 'PUT' }), 3)).toBe('')
  })

  test('that is larger than it may be is refused, and what follows is not waited for', async () => {
    expect(await errorOf(readText(request(['ab', 'cd']), 3))).toEqual(tooLarge())
    const endless = new Request('http://h/', {
      method: 'PUT',
      body: new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(10)) }),
    })
    expect(await errorOf(readText(endless, 1_000))).toEqual(tooLarge())
  })

  test('that says it is larger is refused unread', async () => {
    const { exchange, opened } = exchangeOf(request(['abc'], { 'content-length': '4' }))
    expect(await errorOf(readAtMost(exchange, 3, tooLarge))).toEqual(tooLarge())
    expect(opened.times).toBe(0)
  })
})

describe('what a request says of its body', () => {
  test('is its length, if it says so', () => {
    expect(announcedLength(request(['abc'], { 'content-length': '3' }))).toBe(3)
    expect(announcedLength(request(['abc']))).toBeUndefined()
  })

  test('that it is encoded is refused before it is read', () => {
    for (const encoding of ['gzip', 'GZIP', 'br', 'identity, gzip', '']) {
      const refusal = refusalOf(() => openBody(request(['abc'], { 'content-encoding': encoding }), settings))
      expect([encoding, refusal]).toEqual([encoding, 'content-encoding-unsupported'])
    }
    for (const encoding of ['identity', 'Identity']) {
      expect(refusalOf(() => openBody(request([], { 'content-encoding': encoding }), settings))).toBeUndefined()
    }
  })
})
