// A token proves itself by its signature: whoever guesses at the same address does not hold it back.
import { afterAll, describe, expect, test } from 'bun:test'
import { testAdminPassword, testApiKey } from '../support/berth-process.ts'
import { Guesser } from '../support/guesser.ts'
import { startMoved } from '../support/moved-server.ts'

const server = await startMoved({
  settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', BERTH_AUTH__CHALLENGE: 'bearer' },
})
afterAll(() => server.stop())

const burst = 20

describe('tokens of our own, from an address that is held back', () => {
  test('are good however new they are, for nothing of them is guessed', async () => {
    const neighbour = new Guesser(server)
    const sold = await server.ask('GET', '/v2/_token', { headers: { 'x-api-key': testApiKey } })
    const { token } = (await sold.json()) as { token: string }
    const login = JSON.parse((await neighbour.logIn('admin', testAdminPassword)).text).access_token
    await neighbour.guess(burst)
    expect(await neighbour.guess(1)).toEqual([429])

    for (const secret of [token, login]) {
      expect((await neighbour.ask('GET', '/v2/', { headers: { authorization: `Bearer ${secret}` } })).status).toBe(200)
      const forged = { authorization: `Bearer ${secret.slice(0, -4)}AAAA` }
      expect((await neighbour.ask('GET', '/v2/', { headers: forged })).status).toBe(429)
    }
  })
})
