// What is tried a second time, and that nothing else is. The real client is watched, not replaced.
import { afterAll, afterEach, beforeEach, expect, test } from 'bun:test'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { IdentityStub } from '../../../support/identity/identity-stub.ts'
import { aliceSaid, apiKey, openRemote } from '../../../support/identity/remote-identity.ts'

const stub = await IdentityStub.start()
const cutting = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => void socket.end() } })
const realFetch = globalThis.fetch
const key = apiKey('a-key')

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

test('a connection that is refused is tried once more, and not a third time', async () => {
  await stub.set('down')
  await errorOf(openRemote(stub.url).authenticate(key))
  expect(tries).toBe(2)

  tries = 0
  beforeTry = (index) => (index === 2 ? stub.set('good') : Promise.resolve())
  expect((await openRemote(stub.url).authenticate(key))?.subject).toBe('alice')
  expect(tries).toBe(2)
})

test('a request that may have arrived is not repeated when its connection ends', async () => {
  await errorOf(openRemote(`http://127.0.0.1:${cutting.port}`).authenticate(key))

  expect(tries).toBe(1)
})
