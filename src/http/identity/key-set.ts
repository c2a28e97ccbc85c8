import { keySetMaxAgeSeconds } from '../../identity/key-ring.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { type Answer, type Exchange, jsonAnswer } from '../exchange.ts'

/** GET /api/2021-02-21/jwks.json - the public keys that tokens can be checked with. */
export async function getKeySet({ app }: Exchange): Promise<Answer> {
  if (app.embedded === undefined) throw new RegistryRefusal('route-unknown')
  const keys = await app.embedded.keys.publicKeys()
  return jsonAnswer(200, { keys }, { 'cache-control': `public, max-age=${keySetMaxAgeSeconds}` })
}
