import {
  createApiKey,
  limitToMaker,
  listApiKeys,
  parseKeyName,
  revokeApiKey,
  showApiKey,
} from '../../identity/api-keys.ts'
import { allRights, isRight } from '../../identity/rights.ts'
import { getUser } from '../../identity/users.ts'
import { formatTime, parseTime } from '../../lib/quantities.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../../oci/repository-pattern.ts'
import type { Right } from '../../ports/identity.ts'
import { type Answer, type CallerExchange, jsonAnswer } from '../exchange.ts'
import { fieldInvalid, type JsonObject, optionalTextOf, optionalTextsOf, readJsonObject, textOf } from '../json-body.ts'
import { identityPrefix } from '../mounts.ts'
import { json, type Route } from '../route.ts'
import { bodyBytesMax, embeddedOf, findManaged, forNobodyElse, managedBy } from './managing.ts'

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
    requestBody: { required: true, content: json('NewApiKeyRequest') },
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
  embeddedOf({ app })
  const user = await getUser(app.metadata, path['user'] ?? '', principal.account)
  const keys = await listApiKeys(app.metadata, user)
  return jsonAnswer(200, { keys: keys.map(showApiKey) }, forNobodyElse)
}

/** Null is how a key without such a limit is shown, and so it can be sent. */
const nullable = ['expiresAt', 'rights', 'repositories']

async function postApiKey(exchange: CallerExchange): Promise<Answer> {
  const { app, principal } = exchange
  const { keysPerUserMax } = embeddedOf(exchange)
  const body = await readJsonObject(exchange, bodyBytesMax, { members: ['name', ...nullable], nullable })
  const name = parseKeyName(textOf(body, 'name'))
  // Only now: who the user is may have changed while the body came.
  const user = await findManaged(exchange)
  const limits = limitToMaker(
    { expiresAt: timeIn(body, 'expiresAt'), rights: rightsIn(body), repositories: patternsIn(body) },
    principal,
  )
  const key = await createApiKey(app, user.name, { name, ...limits }, keysPerUserMax, managedBy(exchange))
  return jsonAnswer(
    201,
    {
      name,
      key,
      expiresAt: formatTime(limits.expiresAt),
      rights: limits.rights ?? null,
      repositories: limits.repositories ?? null,
    },
    { ...forNobodyElse, location: `${identityPrefix}/users/${user.name}/keys/${name}` },
  )
}

async function deleteApiKey(exchange: CallerExchange): Promise<Answer> {
  const user = await findManaged(exchange)
  await revokeApiKey(exchange.app.metadata, user, exchange.path['key'] ?? '')
  exchange.app.identity.forgetAll()
  return { status: 204, headers: forNobodyElse }
}

function timeIn(body: JsonObject, name: string): number | undefined {
  const text = optionalTextOf(body, name)
  if (text === undefined) return undefined
  const time = parseTime(text)
  if (time === undefined) throw fieldInvalid(name, 'must be a time with its zone, such as 2030-01-31T12:00:00Z')
  return time
}

function rightsIn(body: JsonObject): readonly Right[] | undefined {
  const given = optionalTextsOf(body, 'rights')
  if (given === undefined) return undefined
  return given.map((right, index) => {
    if (isRight(right)) return right
    throw fieldInvalid(`rights[${index}]`, `must be one of ${allRights.join(', ')}`)
  })
}

const patternsMax = 64

function patternsIn(body: JsonObject): readonly RepositoryPattern[] | undefined {
  const given = optionalTextsOf(body, 'repositories')
  if (given === undefined) return undefined
  if (given.length > patternsMax) throw fieldInvalid('repositories', `must have at most ${patternsMax} entries`)
  return given.map((text, index) => {
    const pattern = parseRepositoryPattern(text)
    if (pattern !== undefined) return pattern
    throw fieldInvalid(`repositories[${index}]`, 'must be the name of a repository, with * for any text')
  })
}
