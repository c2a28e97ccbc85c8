// Users and keys, managed over HTTP as an operator's program would.
import { type ApiServer, identity, type Question, type Reply } from './api-server.ts'

export const usersPath = `${identity}/users`
export const password = 'a password of a user'

export interface ShownUser {
  readonly name: string
  readonly account: string
  readonly roles: readonly string[]
  readonly disabled: boolean
  readonly hasPassword: boolean
}

export interface ShownKey {
  readonly name: string
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
  readonly rights: readonly string[] | null
  readonly repositories: readonly string[] | null
}

export function json(body: unknown): Question {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

/** Makes the user; anything but 201 ends the test. */
export async function makeUser(server: ApiServer, name: string, rest: Readonly<Record<string, unknown>> = {}) {
  return expectMade(await server.ask('POST', usersPath, json({ name, ...rest }))).json<ShownUser>()
}

/** Makes a key for the user, and gives it. */
export async function makeKey(server: ApiServer, user: string, body: Readonly<Record<string, unknown>> = {}) {
  const reply = await server.ask('POST', `${usersPath}/${user}/keys`, json({ name: 'laptop', ...body }))
  return expectMade(reply).json<{ key: string }>().key
}

export async function logIn(server: ApiServer, username: string, given: string = password): Promise<string> {
  const reply = await server.ask('POST', `${identity}/token/auth`, {
    key: 'none',
    ...json({ username, password: given }),
  })
  if (reply.status !== 200) throw new Error(`the login of ${username} ended with ${reply.status}: ${reply.text}`)
  return reply.json<{ access_token: string }>().access_token
}

export const bearer = (token: string): Question => ({ key: 'none', headers: { authorization: `Bearer ${token}` } })

function expectMade(reply: Reply): Reply {
  if (reply.status !== 201) throw new Error(`it was not made, but ${reply.status}: ${reply.text}`)
  return reply
}
