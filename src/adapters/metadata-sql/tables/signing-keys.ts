import type { SigningKey, SigningKeys } from '../../../ports/signing-keys.ts'
import type { Queryable } from '../database.ts'

interface SigningKeyRow {
  readonly kid: string
  readonly created_at: number
  readonly private_jwk: string
}

/** The signing keys in the database: servers that share a database accept each other's tokens. */
export class SqlSigningKeys implements SigningKeys {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async list(): Promise<SigningKey[]> {
    const rows = await this.#queries.all<SigningKeyRow>(
      'SELECT kid, created_at, private_jwk FROM signing_keys ORDER BY created_at, kid',
      [],
    )
    return rows.map((row) => ({
      kid: row.kid,
      createdAt: row.created_at,
      privateJwk: JSON.parse(row.private_jwk) as SigningKey['privateJwk'],
    }))
  }

  async add({ kid, createdAt, privateJwk }: SigningKey): Promise<void> {
    await this.#queries.run('INSERT INTO signing_keys (kid, created_at, private_jwk) VALUES ($1, $2, $3)', [
      kid,
      createdAt,
      JSON.stringify(privateJwk),
    ])
  }

  async remove(kid: string): Promise<void> {
    await this.#queries.run('DELETE FROM signing_keys WHERE kid = $1', [kid])
  }
}
