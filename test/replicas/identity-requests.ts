// Requests to the identity service of a replica: keys, logins and tokens.
import { testAdminPassword } from '../support/basics/test-project.ts'
import { ask, expectStatus, jsonOf, type Target } from '../support/clients/registry-client.ts'

export const identity = '/api/2021-02-21'
export const json = (body: unknown) => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
})
export const bearing = (token: string) => ({ authorization: `Bearer ${token}` })

export async function statusWith(
  target: Target,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const answer = await fetch(target.url + path, { headers })
  await answer.arrayBuffer()
  return answer.status
}

/** The status of `/me` for an API key. */
export const me = (target: Target, key: string) => statusWith(target, `${identity}/me`, { 'x-api-key': key })

export async function makeKey(target: Target, name: string, rest: { readonly expiresAt?: string } = {}) {
  const asked = ask(target, 'POST', `${identity}/users/admin/keys`, json({ name, ...rest }))
  const { key }: { key: string } = JSON.parse(await (await expectStatus(201, asked)).text())
  return key
}

export async function login(target: Target): Promise<string> {
  const asked = ask(target, 'POST', `${identity}/token/auth`, json({ username: 'admin', password: testAdminPassword }))
  return (await jsonOf<{ access_token: string }>(asked)).access_token
}

export async function scopedToken(target: Target, repository: string): Promise<string> {
  const path = `/v2/_token?scope=repository:${repository}:pull,push`
  return (await jsonOf<{ token: string }>(ask(target, 'GET', path))).token
}
