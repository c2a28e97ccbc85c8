import { tellFull } from '../../identity/password-logins.ts'
import { tokenLifetimeSeconds } from '../../identity/tokens.ts'
import { findByPassword } from '../../identity/users.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import { noteFailedLogin, noteLogin } from '../audit.ts'
import { type Exchange, getEmbeddedIdentity } from '../exchange.ts'
import { jsonBody, readJson } from '../json-body.ts'
import { identityPrefix } from '../mounts.ts'
import { json, type Route } from '../route.ts'

/** The longest password, with each of its letters escaped as `\uXXXX`, and a name. */
const bodyBytesMax = 8_192
const login = jsonBody('TokenRequest', bodyBytesMax)

export const tokenRoutes: readonly Route[] = [
  {
    operationId: 'postToken',
    method: 'POST',
    pattern: `${identityPrefix}/token/auth`,
    access: 'anyone',
    handle: postToken,
    summary: 'Get a bearer token for a user name and a password',
    onlyWith: 'embedded identity',
    requestBody: login,
    answers: {
      200: {
        description: 'The token, valid for 86400 seconds.',
        headers: { 'Cache-Control': 'always' },
        content: json('TokenResponse'),
      },
    },
    refusals: ['body-invalid', 'login-invalid', 'too-many-failures'],
  },
]

async function postToken(exchange: Exchange): Promise<Answer> {
  const { app, request, authenticator } = exchange
  const { tokens } = getEmbeddedIdentity(app)
  const { username, password } = await readJson(exchange, login)
  const user = await authenticator.attempt(request, { credential: `${username}\n${password}`, target: username }, () =>
    findByPassword(app.metadata, username, password).catch(tellFull),
  )
  if (user === undefined) {
    noteFailedLogin(exchange, username)
    throw new RegistryRefusal('login-invalid')
  }
  noteLogin(exchange, { account: user.account, subject: user.name })
  const token = {
    access_token: await tokens.issue(user),
    scope: user.account,
    token_type: 'Bearer',
    expires_in: tokenLifetimeSeconds,
  }
  return jsonAnswer(200, token, { 'cache-control': 'no-store' })
}
