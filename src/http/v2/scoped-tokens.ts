import { type ScopedGrant, trimToken } from '../../identity/scoped-tokens.ts'
import { parseScopes } from '../../identity/scopes.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import type { Principal } from '../../ports/identity.ts'
import { isAllowed, isGrantable, listablePatterns } from '../../registry/access.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import { noteLogin } from '../audit.ts'
import { type PresentedCredential, toLogin } from '../credentials.ts'
import type { Exchange } from '../exchange.ts'
import { readSmallBody } from '../json-body.ts'
import { type DocumentedAnswer, json, type Route } from '../route.ts'
import { bodyInvalid } from '../strict-json.ts'

const tokenAnswer: DocumentedAnswer = {
  description: 'The token. It may grant fewer rights than were requested.',
  headers: { 'Cache-Control': 'always' },
  content: json('ScopedTokenResponse'),
}

export const scopedTokenRoutes: readonly Route[] = [
  {
    operationId: 'getScopedToken',
    method: 'GET',
    pattern: '/_token',
    access: 'anyone',
    handle: getScopedToken,
    summary: 'Get a short-lived token for some repositories',
    description:
      'The credentials can be sent in all ways that other requests accept. Anonymous callers get a token for the repositories that the setting `auth.anonymous_pull` opens to them. Only with the setting `auth.challenge: bearer`.',
    onlyWith: 'bearer challenge',
    parameters: ['scope', 'tokenService'],
    answers: { 200: tokenAnswer },
    refusals: ['unauthenticated', 'credentials-invalid', 'too-many-failures'],
  },
  {
    operationId: 'postScopedToken',
    method: 'POST',
    pattern: '/_token',
    access: 'anyone',
    handle: postScopedToken,
    summary: 'Get a short-lived token by an OAuth 2 form',
    onlyWith: 'bearer challenge',
    requestBody: { required: true, content: { 'application/x-www-form-urlencoded': 'ScopedTokenForm' } },
    answers: { 200: tokenAnswer },
    refusals: ['body-invalid', 'cross-site-request', 'unauthenticated', 'credentials-invalid', 'too-many-failures'],
  },
]

const formBytesMax = 32_768

/** Docker's token specification: "a token should never be returned with less than 60 seconds to live". */
const lifetimeSecondsMin = 60

async function getScopedToken(exchange: Exchange): Promise<Answer> {
  refuseUnlessBearer(exchange)
  return issueToken(exchange, exchange.present(), exchange.target.query.getAll('scope'))
}

async function postScopedToken(exchange: Exchange): Promise<Answer> {
  refuseUnlessBearer(exchange)
  const form = new URLSearchParams(
    new TextDecoder().decode(await readSmallBody(exchange, formBytesMax, 'application/x-www-form-urlencoded')),
  )
  // There are no refresh tokens. The message tells the client what to send instead.
  if (form.get('grant_type') !== 'password') throw bodyInvalid('grant_type must be password')
  return issueToken(exchange, findInForm(form) ?? exchange.present(), form.getAll('scope'))
}

/** Clients that support only the Docker protocol repeat the request as GET when they get 404 for POST. */
function refuseUnlessBearer({ app }: Exchange): void {
  if (app.http.challenge !== 'bearer') throw new RegistryRefusal('route-unknown')
}

/** Without a user in the form, the other credentials of the request count. */
function findInForm(form: URLSearchParams): PresentedCredential | undefined {
  const [username, password] = [form.get('username'), form.get('password')]
  if (username === null && password === null) return undefined
  return { carrier: 'authorization', credential: toLogin(username ?? '', password ?? '') }
}

async function issueToken(
  exchange: Exchange,
  presented: PresentedCredential | undefined,
  scopes: readonly string[],
): Promise<Answer> {
  const { app, authenticator, request } = exchange
  const principal = await authenticator.identify(request, presented)
  // A scoped token cannot be used to get another token, not even that of an anonymous caller: otherwise a caller could renew its
  // access forever.
  if (presented !== undefined && principal.kind !== undefined) throw new RegistryRefusal('credentials-invalid')
  const { access, catalog } = trimToken({ principal, ...grantedOf(scopes, principal) })
  const now = app.clock.now()
  // A token never outlives the credential it was issued for, even if that makes it shorter than the minimum. While the
  // identity service is down, tokens are short, so that they do not prolong the time that cached callers are accepted.
  const lifetimeMs = principal.isUnconfirmed ? lifetimeSecondsMin * 1000 : app.scopedTokens.lifetimeMs
  const expiresAt = Math.min(now + lifetimeMs, principal.expiresAt ?? Number.POSITIVE_INFINITY)
  const token = await app.scopedTokens.issue({ principal, access, catalog }, expiresAt)
  if (principal.kind !== 'anonymous') noteLogin(exchange, principal)
  const granted = access
    .filter(({ rights }) => rights.length > 0)
    .map(({ repository, rights }) => `repository:${repository}:${rights.join(',')}`)
  return jsonAnswer(
    200,
    {
      token,
      access_token: token,
      token_type: 'Bearer',
      expires_in: Math.max(lifetimeSecondsMin, Math.floor((expiresAt - now) / 1000)),
      issued_at: new Date(now).toISOString(),
      scope: (catalog === undefined ? granted : [...granted, 'registry:catalog:*']).join(' '),
    },
    { 'cache-control': 'no-store' },
  )
}

/**
 * The requested rights that the principal may pass on; fewer than requested is no error. A repository without any
 * rights is listed too, so that the client is not sent back for rights that it has already requested in vain.
 */
function grantedOf(scopes: readonly string[], principal: Principal) {
  const requested = parseScopes(scopes)
  const access = [...requested.repositories].map(
    ([repository, rights]): ScopedGrant => ({
      repository,
      rights: [...rights].filter((right) => isGrantable(principal, right, repository)),
    }),
  )
  const showsCatalog = requested.catalog && isAllowed(principal, 'pull')
  return { access, catalog: showsCatalog ? (listablePatterns(principal) ?? ('all' as const)) : undefined }
}
