// Requests with secrets to a server that is broken in one way after the other: what it logs then is not what it logs always.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf } from '../../support/api/api-images.ts'
import { api, identity } from '../../support/api/api-server.ts'
import { carriers } from '../../support/api/carriers.ts'
import { damageMetadata, garbleUsers, moveBlobsAway } from '../../support/stores/store-damage.ts'
import { type CanaryServer, newSecret } from './canary-server.ts'

const paths = [
  '/v2/_catalog',
  `/v2/matrix/app/blobs/${digestOf('{}')}`,
  `${api}/stats`,
  `${identity}/me`,
  '/readyz',
  '/v2/_token',
]

async function askAll(server: CanaryServer, token: string, statuses: Set<number>): Promise<void> {
  for (const path of paths) {
    for (const carrier of carriers) {
      const secret = { token, apiKey: server.apiKey, password: server.password }[carrier.kind]
      statuses.add((await server.askBy(carrier, secret, 'GET', path)).status)
    }
  }
  const body = JSON.stringify({ username: 'admin', password: server.password })
  const login = { headers: { 'content-type': 'application/json' }, body }
  statuses.add((await server.ask('POST', `${identity}/token/auth`, login)).status)
}

/** Gives all statuses that a broken server answered. */
export async function askWhileBroken(server: CanaryServer): Promise<ReadonlySet<number>> {
  const { dataDir } = server.berth
  const statuses = new Set<number>()
  // Signed by an unknown key: the check of the token looks for new keys first.
  const token = foreignToken()
  server.canaries.add({ name: 'a token with a foreign signature', secret: token.split('.')[2] ?? '' })
  const askAndNote = async () => {
    // Longer than good credentials are remembered, and keys are not looked for.
    await Bun.sleep(1_100)
    await askAll(server, token, statuses)
  }

  garbleUsers(dataDir)
  await askAndNote()
  damageMetadata(dataDir, `UPDATE users SET roles = '["admin"]'`)

  for (const table of ['api_keys', 'users', 'accounts']) {
    damageMetadata(dataDir, `ALTER TABLE ${table} RENAME TO lost_${table}`)
    await askAndNote()
    damageMetadata(dataDir, `ALTER TABLE lost_${table} RENAME TO ${table}`)
  }

  const { moveBack } = moveBlobsAway(dataDir)
  await askAndNote()
  moveBack()

  const damaged = join(dataDir, 'identity', 'damaged.jwk.json')
  for (const write of [
    (secret: string) => `{"kid":"damaged","createdAt":1,"privateJwk":{"kty":"OKP","crv":"Ed25519","d":${secret}"}}`,
    (secret: string) => `{"kid":"damaged","createdAt":"1","privateJwk":"${secret}"}`,
    (secret: string) => `{"kid":"damaged","createdAt":1,"privateJwk":{"kty":"OKP","crv":"${secret}","d":"${secret}"}}`,
  ]) {
    const secret = newSecret()
    server.privateKeys.add({ name: 'a private key in a damaged file', secret })
    writeFileSync(damaged, write(secret))
    await askAndNote()
  }
  rmSync(damaged)
  return statuses
}

function foreignToken(): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { iss: 'berth', aud: 'berth', sub: 'admin', epoch: 0, exp: 9_999_999_999 }
  return `${encode({ alg: 'EdDSA', typ: 'JWT', kid: crypto.randomUUID() })}.${encode(claims)}.${newSecret()}`
}
