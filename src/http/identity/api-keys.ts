import { createApiKey, limitToCreator, listApiKeys, revokeApiKey, showApiKey } from '../../identity/api-keys.ts'
import { parseKeyName } from '../../identity/names.ts'
import { getUser } from '../../identity/users.ts'
import { formatTime, parseTime } from '../../lib/quantities.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../../oci/repository-pattern.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import { type CallerExchange, getEmbeddedIdentity } from '../exchange.ts'
import { jsonBody, readJson } from '../json-body.ts'
import { identityPrefix } from '../mounts.ts'
import { json, type Route } from '../route.ts'
import { fieldInvalid } from '../strict-json.ts'
import { bodyBytesMax, checkManagedBy, getManagedUser, noStore } from './user-management.ts'

const newApiKey = jsonBody('NewApiKeyRequest', bodyBytesMax)

export const apiKeyRoutes: readonly Route[] = [
  {
    operationId: 'getApiKeys',
    method: 'GET',
    pattern: `${identityPrefix}/users/{user}/keys`,
    access: 'known caller',
    right: 'operate',
    handle: getApiKeys,
    summary: 'List the API keys of a user, without the keys themselves',
    onlyWith: 'embedded identity',
    answers: {
      200: {
        description: 'The keys, ordered by name.',
        headers: { 'Cache-Control': 'always' },
        content: json('ApiKeysResponse'),
      },
    },
    refusals: ['user-unknown'],
  },
  {
    operationId: 'postApiKey',
    method: 'POST',
    pattern: `${identityPrefix}/users/{user}/keys`,
    access: 'known caller',
    right: 'operate',
    handle: postApiKey,
    summary: 'Create an API key, which only this answer shows',
    description:
      'It can be limited to some rights and some repositories. A key never has more rights than the caller, and expires no later than the API key of the caller.',
    onlyWith: 'embedded identity',
    requestBody: newApiKey,
    answers: {
      201: {
        description: 'The key.',
        headers: { 'Cache-Control': 'always', Location: 'always' },
        content: json('NewApiKeyResponse'),
      },
    },
    refusals: ['body-invalid', 'identity-invalid', 'user-unknown', 'key-exists', 'too-many-keys'],
  },
  {
    operationId: 'deleteApiKey',
    method: 'DELETE',
    pattern: `${identityPrefix}/users/{user}/keys/{key}`,
    access: 'known caller',
    right: 'operate',
    handle: deleteApiKey,
    summary: 'Revoke an API key',
    onlyWith: 'embedded identity',
    answers: { 204: { description: 'The key is revoked.', headers: { 'Cache-Control': 'always' } } },
    refusals: ['user-unknown', 'key-unknown'],
  },
]

async function getApiKeys({ app, principal, path }: CallerExchange): Promise<Answer> {
  getEmbeddedIdentity(app)
  const user = await getUser(app.metadata, path['user'] ?? '', principal.account)
  const keys = await listApiKeys(app.metadata, user)
  return jsonAnswer(200, { keys: keys.map(showApiKey) }, noStore)
}

async function postApiKey(exchange: CallerExchange): Promise<Answer> {
  const { app, principal } = exchange
  const { keysPerUserMax } = getEmbeddedIdentity(app)
  const body = await readJson(exchange, newApiKey)
  const name = parseKeyName(body.name)
  // After the body: the user may have changed while it arrived.
  const user = await getManagedUser(exchange)
  const asked = {
    expiresAt: parseExpiry(body.expiresAt ?? undefined),
    rights: body.rights ?? undefined,
    repositories: body.repositories?.map(parsePattern),
  }
  const limits = limitToCreator(asked, principal)
  const key = await createApiKey(app, user.name, { name, ...limits }, keysPerUserMax, checkManagedBy(exchange))
  return jsonAnswer(
    201,
    {
      name,
      key,
      expiresAt: formatTime(limits.expiresAt),
      rights: limits.rights ?? null,
      repositories: limits.repositories ?? null,
    },
    { ...noStore, location: `${identityPrefix}/users/${user.name}/keys/${name}` },
  )
}

async function deleteApiKey(exchange: CallerExchange): Promise<Answer> {
  const user = await getManagedUser(exchange)
  await revokeApiKey(exchange.app.metadata, user, exchange.path['key'] ?? '')
  await exchange.app.identity.clear()
  return { status: 204, headers: noStore }
}

function parseExpiry(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = parseTime(text)
  if (time === undefined) throw fieldInvalid('expiresAt', 'must be a time with its zone, such as 2030-01-31T12:00:00Z')
  return time
}

function parsePattern(text: string, index: number): RepositoryPattern {
  const pattern = parseRepositoryPattern(text)
  if (pattern !== undefined) return pattern
  throw fieldInvalid(`repositories[${index}]`, 'must be the name of a repository, with * for any text')
}
