import { keySetMaxAgeSeconds } from '../../identity/key-ring.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import { type Exchange, getEmbeddedIdentity } from '../exchange.ts'
import { identityPrefix } from '../mounts.ts'
import { json, type Route } from '../route.ts'

export const keySetRoutes: readonly Route[] = [
  {
    operationId: 'getKeySet',
    method: 'GET',
    pattern: `${identityPrefix}/jwks.json`,
    access: 'anyone',
    handle: getKeySet,
    summary: 'Get the public keys that verify tokens',
    description:
      'A new key is published here some time before it signs tokens, and stays until the last token that it signed has expired.',
    onlyWith: 'embedded identity',
    answers: { 200: { description: 'The keys.', headers: { 'Cache-Control': 'always' }, content: json('KeySet') } },
  },
]

async function getKeySet({ app }: Exchange): Promise<Answer> {
  const keys = await getEmbeddedIdentity(app).keys.publicKeys()
  return jsonAnswer(200, { keys }, { 'cache-control': `public, max-age=${keySetMaxAgeSeconds}` })
}
