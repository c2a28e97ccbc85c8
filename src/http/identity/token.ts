import { findByPassword } from '../../identity/embedded-identity.ts'
import { tokenLifetimeSeconds } from '../../identity/tokens.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { withoutParameters } from '../../oci/media-types.ts'
import { type Answer, type Exchange, jsonAnswer } from '../exchange.ts'
import { readAtMost } from '../request-body.ts'

const bodyBytesMax = 4_096
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** POST /api/2021-02-21/token/auth - user name and password for a token. */
export async function postToken(exchange: Exchange): Promise<Answer> {
  const { app, request } = exchange
  if (app.embedded === undefined) throw new RegistryRefusal('route-unknown')
  if (withoutParameters(request.headers.get('content-type') ?? '') !== 'application/json') {
    throw new RegistryRefusal('body-invalid', { reason: 'the content type must be application/json' })
  }
  const { username, password } = parseLogin(
    await readAtMost(exchange, bodyBytesMax, () => new RegistryRefusal('body-invalid', { max: bodyBytesMax })),
  )
  const user = await findByPassword(app.embedded.users, username, password)
  if (user === undefined) throw new RegistryRefusal('login-invalid')
  const token = {
    access_token: await app.embedded.tokens.issue(user, app.clock.now()),
    scope: user.account,
    token_type: 'Bearer',
    expires_in: tokenLifetimeSeconds,
  }
  return jsonAnswer(200, token, { 'cache-control': 'no-store' })
}

function parseLogin(bytes: Uint8Array): { username: string; password: string } {
  let body: unknown
  try {
    body = JSON.parse(utf8.decode(bytes))
  } catch {
    throw new RegistryRefusal('body-invalid', { reason: 'not JSON' })
  }
  if (typeof body !== 'object' || body === null || !('username' in body) || !('password' in body)) {
    throw new RegistryRefusal('body-invalid', { reason: 'username and password are needed' })
  }
  const { username, password } = body
  if (typeof username !== 'string' || typeof password !== 'string') {
    throw new RegistryRefusal('body-invalid', { reason: 'username and password must be strings' })
  }
  return { username, password }
}
