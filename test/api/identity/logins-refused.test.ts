// A refused login does not tell the reason: the status, the text, the headers and the work are always the same.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isPassword } from '../../../src/identity/passwords.ts'
import { type ApiServer, identity, type Reply, startApi } from '../../support/api/api-server.ts'
import { json, makeUser, usersPath } from '../../support/api/managed-users.ts'
import { testAdminPassword } from '../../support/basics/test-project.ts'
import { until } from '../../support/clocks/until.ts'

let server: ApiServer
const password = 'a password of somebody'
const longest = 'ü'.repeat(1_024)

beforeAll(async () => {
  // One process, because a test occupies its password checks.
  server = await startApi({ BERTH_SERVER__WORKERS: '1', BERTH_AUTH__FAILURE_BURST: '1000' })
  for (const name of ['ann', 'disabled']) await makeUser(server, name, { password })
  await makeUser(server, 'without-password')
  await makeUser(server, 'long', { password: longest })
  await server.ask('PATCH', `${usersPath}/disabled`, json({ disabled: true }))
})
afterAll(() => server.stop())

function logIn(username: string, given: string, encode: (body: unknown) => string = JSON.stringify): Promise<Reply> {
  const question = { ...json({}), key: 'none', body: encode({ username, password: given }) }
  return server.ask('POST', `${identity}/token/auth`, question)
}

/** All of an answer but what is another one each time. */
function seenIn({ status, headers, text }: Reply): unknown {
  const its = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id')
  return { status, text, headers: its.toSorted(([one], [other]) => (one < other ? -1 : 1)) }
}

describe('a login is refused', () => {
  const refused = [
    ['an unknown user', 'nobody', password],
    ['a disabled user', 'disabled', password],
    ['a disabled user with a wrong password', 'disabled', 'a wrong password'],
    ['a user without a password', 'without-password', password],
    ['a user without a password, who gives none', 'without-password', ''],
    ['no password', 'ann', ''],
    ['a password that is too long', 'ann', 'x'.repeat(1_025)],
    ['an unknown user with a password that is too long', 'nobody', 'x'.repeat(1_025)],
    ['the name in other letters', 'ANN', password],
    ['an empty name', '', password],
    ['a name that cannot be', "x' OR '1'='1", password],
    ['a name of four thousand letters', 'x'.repeat(4_000), password],
    ['the user name apikey', 'apikey', password],
  ] as const

  test.each(refused)('to %s exactly as to a wrong password', async (_, name, given) => {
    const expected = seenIn(await logIn('ann', 'a wrong password'))

    expect(expected).toMatchObject({ status: 401, text: '{"msg":"user name or password is wrong"}' })
    expect(seenIn(await logIn(name, given))).toEqual(expected)
  })

  test('with the challenge of all 401 answers, and must not be cached', async () => {
    const { headers } = await logIn('ann', 'a wrong password')

    expect(headers.get('www-authenticate')).toBe('Basic realm="Berth", charset="UTF-8"')
    expect(headers.get('set-cookie')).toBeNull()
  })

  test('and not to the right password (the control)', async () => {
    expect((await logIn('ann', password)).status).toBe(200)
  })
})

test('the longest password works, plain or with every letter escaped', async () => {
  const escaped = (body: unknown) => JSON.stringify(body).replaceAll('ü', '\\u00fc')

  expect([(await logIn('long', longest)).status, (await logIn('long', longest, escaped)).status]).toEqual([200, 200])
  expect((await logIn('long', `${longest.slice(1)}u`)).status).toBe(401)
})

describe('when more log in at once than may', () => {
  test('the next is told to come back, and the others of the server are served', async () => {
    let isOver = false
    // More than the 66 that find a place. Each pauses between two tries, so that other work of the process goes on even if
    // the comparison takes no time.
    const busy = Array.from({ length: 100 }, async () => {
      while (!isOver) {
        await isPassword('x', undefined).catch(() => undefined)
        await Bun.sleep(0)
      }
    })

    const refused = await until('a login finds no place', async () => {
      const reply = await logIn('admin', testAdminPassword)
      return reply.status === 503 && reply
    }).finally(() => {
      isOver = true
    })
    const me = await server.ask('GET', `${identity}/me`)
    await Promise.all(busy)

    expect(refused.headers.get('retry-after')).toBe('5')
    expect(refused.json()).toEqual({ msg: expect.stringContaining('unavailable') })
    expect(me.status).toBe(200)
    expect((await logIn('admin', testAdminPassword)).status).toBe(200)
  })

  test('a flood of right logins ends in tokens and 503, nothing else', async () => {
    const replies = await Promise.all(Array.from({ length: 200 }, () => logIn('admin', testAdminPassword)))
    const statuses = new Set(replies.map(({ status }) => status))

    expect([...statuses].toSorted()).toEqual([200, 503])
    expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(66)
  })
})
