// Tokens of bearer mode: requested over HTTP, or signed with the server's own key as it would never sign them.
import { join } from 'node:path'
import { FilesystemSigningKeys } from '../../../src/adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import { KeyRing } from '../../../src/identity/key-ring.ts'
import { type ScopedToken, ScopedTokens } from '../../../src/identity/scoped-tokens.ts'
import { testAdminPassword } from '../basics/test-project.ts'
import { type ApiServer, type Question, type Reply, startApi } from './api-server.ts'
import { logIn } from './managed-users.ts'

export interface IssuedToken {
  readonly token: string
  readonly access_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly issued_at: string
  readonly scope: string
}

/** A server in bearer mode. Tests send more bad credentials than its failure limits would bear. */
export function startBearerApi(settings: Readonly<Record<string, string>> = {}): Promise<ApiServer> {
  return startApi({ BERTH_AUTH__CHALLENGE: 'bearer', BERTH_AUTH__FAILURE_BURST: '100000', ...settings })
}

export function askForToken(
  server: ApiServer,
  scopes: readonly string[],
  question: Question = {},
  mount = '/v2',
): Promise<Reply> {
  const query = new URLSearchParams(scopes.map((scope): [string, string] => ['scope', scope]))
  return server.ask('GET', `${mount}/_token?${query}`, question)
}

export async function fetchToken(server: ApiServer, scope: string, question: Question = {}): Promise<IssuedToken> {
  const reply = await askForToken(server, [scope], question)
  if (reply.status !== 200) throw new Error(`no token for ${scope}: ${reply.status} ${reply.text}`)
  return reply.json<IssuedToken>()
}

/** A question that carries this token and nothing else. */
export function bearing(token: string): Required<Pick<Question, 'headers' | 'key'>> {
  return { headers: { authorization: `Bearer ${token}` }, key: 'none' }
}

/** A token of the identity service, for a password. */
export function loginToken(server: ApiServer, username = 'admin', password = testAdminPassword): Promise<string> {
  return logIn(server, username, password)
}

/** Signed by the server's own key, with any content and any end. */
export async function forgeToken(server: ApiServer, token: ScopedToken, expiresAt: number): Promise<string> {
  const clock = { now: () => Date.now(), freshId: () => crypto.randomUUID() }
  const keys = await KeyRing.open(new FilesystemSigningKeys(join(server.dataDir, 'identity')), clock, 0)
  return new ScopedTokens(keys, clock, 1).issue(token, expiresAt)
}

export function claimsOf(token: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}
