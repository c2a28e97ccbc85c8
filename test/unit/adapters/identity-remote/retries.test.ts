// What is tried a second time, and that nothing else is. The real client is watched, not replaced.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { IdentityStub } from '../../../support/identity/identity-stub.ts'
import { aliceSaid, apiKey, openRemote } from '../../../support/identity/remote-identity.ts'

const stub = await IdentityStub.start()
const cutting = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => void socket.end() } })
const realFetch = globalThis.fetch
const key = apiKey('a-key')
const shortMs = 200

let tries = 0
let beforeTry: (index: number) => Promise<void> = async () => undefined

beforeEach(async () => {
  tries = 0
  beforeTry = async () => undefined
  stub.people.set(key.secret, aliceSaid)
  globalThis.fetch = Object.assign(
    async (...given: Parameters<typeof fetch>) => {
      tries += 1
      await beforeTry(tries)
      return realFetch(...given)
    },
    { preconnect: realFetch.preconnect },
  )
})

afterEach(() => {
  globalThis.fetch = realFetch
})

afterAll(async () => {
  cutting.stop(true)
  await stub.stop()
})

describe('a connection that is refused', () => {
  test('is tried once more, and a service that is back by then is asked', async () => {
    await stub.set('down')
    beforeTry = (index) => (index === 2 ? stub.set('good') : Promise.resolve())

    expect((await openRemote(stub.url).authenticate(key))?.subject).toBe('alice')
    expect(tries).toBe(2)
  })

  test('is not tried a third time', async () => {
    await stub.set('down')
    await errorOf(openRemote(stub.url).authenticate(key))

    expect(tries).toBe(2)
  })
})

describe('what may have arrived is not asked twice', () => {
  test.each(['slow', 'slow body', '429', '500', '503', 'html', 'huge', 'redirect'] as const)(
    'a service that is %s',
    async (state) => {
      await stub.set(state)
      await errorOf(openRemote(stub.url, { timeoutMs: shortMs }).authenticate(key))

      expect(tries).toBe(1)
    },
  )

  test('a connection that ends in the middle', async () => {
    await errorOf(openRemote(`http://127.0.0.1:${cutting.port}`).authenticate(key))

    expect(tries).toBe(1)
  })

  test('an answer', async () => {
    await stub.set('good')
    await openRemote(stub.url).authenticate(key)

    expect(tries).toBe(1)
  })
})
