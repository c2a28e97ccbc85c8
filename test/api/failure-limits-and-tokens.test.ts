// Keys and tokens of our own cannot be guessed, so bad credentials from the same address do not hold them back.
import { afterAll, describe, expect, test } from 'bun:test'
import { makeKey } from '../support/api/carriers.ts'
import { Guesser, newGuess } from '../support/api/guesser.ts'
import { testAdminPassword, testApiKey } from '../support/basics/test-project.ts'
import { startMoved } from '../support/server/moved-server.ts'
import { basic } from '../support/server/test-server.ts'

const server = await startMoved({
  settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', BERTH_AUTH__CHALLENGE: 'bearer' },
})
afterAll(() => server.stop())

const burst = 20

describe('from an address that is held back', () => {
  test('a new API key of our own is good, and a bad one of the same form gets 429', async () => {
    const guesser = new Guesser(server)
    const key = await makeKey(server, 'beside-guesses')
    await guesser.guess(burst)
    expect(await guesser.guess(1)).toEqual([429])

    const loginWith = (secret: string) =>
      guesser.ask('GET', '/v2/', { headers: { authorization: basic('admin', secret) } })
    const other = `${key.slice(0, -4)}AAAA`
    expect([(await guesser.bring(key)).status, (await loginWith(key)).status]).toEqual([200, 200])
    expect([(await guesser.bring(other)).status, (await loginWith(other)).status]).toEqual([429, 429])
  })

  test('tokens of our own are good, however new they are', async () => {
    const guesser = new Guesser(server)
    const issued = await server.ask('GET', '/v2/_token', { headers: { 'x-api-key': testApiKey } })
    const { token } = (await issued.json()) as { token: string }
    const login = JSON.parse((await guesser.logIn('admin', testAdminPassword)).text).access_token
    await guesser.guess(burst)
    expect(await guesser.guess(1)).toEqual([429])

    for (const secret of [token, login]) {
      expect((await guesser.ask('GET', '/v2/', { headers: { authorization: `Bearer ${secret}` } })).status).toBe(200)
      const forged = { authorization: `Bearer ${secret.slice(0, -4)}AAAA` }
      expect((await guesser.ask('GET', '/v2/', { headers: forged })).status).toBe(429)
    }
  })
})

test('bad API keys from everywhere do not delay a caller with a good one', async () => {
  const fresh: string[] = []
  for (let number = 0; number < 18; number += 1) fresh.push(await makeKey(server, `fresh-${number}`))
  for (let tries = 0; tries < 400; tries += 1) {
    await new Guesser(server, `2001:${tries.toString(16)}:1:1::1`).bring(newGuess())
  }
  const statuses = await Promise.all(fresh.map(async (key) => (await new Guesser(server).bring(key)).status))

  expect(statuses).toEqual(statuses.map(() => 200))
})
