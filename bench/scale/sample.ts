// Draws keys from the generated rows. They are always the same for a size, so that two runs can be compared.
import type { Digest } from '../../src/oci/digest.ts'
import type { RepositoryName, Tag } from '../../src/oci/names.ts'
import { shapeOf } from './registry-shape.ts'

/** A manifest with a tag and a blob of its own, and its repository. */
export interface Key {
  readonly accountId: number
  readonly account: string
  readonly repositoryId: number
  readonly repository: RepositoryName
  readonly manifestId: number
  readonly digest: Digest
  readonly tag: Tag
  readonly blobId: number
  readonly blob: Digest
}

export interface World {
  readonly size: number
  /** Half of the draws hit the first fifty. */
  draw(): Key
  /** A number below `below`. */
  chance(below: number): number
  /** Starts the same sequence of draws again. The rows that they read are then in memory. */
  rewind(): void
  /** The account with a third of all rows: names of its repositories, and the one in the middle. */
  readonly huge: { readonly id: number; readonly name: string; readonly names: readonly RepositoryName[] }
  /** The repository with one percent of all manifests, and some of its tags. */
  readonly big: Key & { readonly tags: readonly Tag[] }
  /** The blob that most repositories of the huge account link, and these repositories. */
  readonly mostLinked: { readonly id: number; readonly digest: Digest; readonly holders: readonly number[] }
  /** The manifest that most others name as their subject. */
  readonly subject: { readonly digest: Digest; readonly digests: readonly Digest[] }
  readonly users: number
}

const keyColumns = `
  a.id AS "accountId", a.name AS account, r.id AS "repositoryId", r.name AS repository, m.id AS "manifestId", m.digest,
  t.name AS tag, e.blob_id AS "blobId", e.digest AS blob`

/** `chosen` selects ids of manifests. Manifests without a tag or a blob are left out. */
const keysOf = (chosen: string) => `
SELECT ${keyColumns} FROM (${chosen}) c
JOIN manifests m ON m.id = c.id
JOIN repositories r ON r.id = m.repository_id
JOIN accounts a ON a.id = m.account_id AND a.state = 'enabled'
CROSS JOIN LATERAL (SELECT name FROM tags WHERE account_id = m.account_id AND manifest_id = m.id LIMIT 1) t
CROSS JOIN LATERAL (SELECT blob_id, digest FROM manifest_entries
                    WHERE account_id = m.account_id AND manifest_id = m.id AND blob_id IS NOT NULL LIMIT 1) e`

/** Each manifest is equally likely, so large repositories are drawn more often. */
const byManifest = (size: number, draws: number) =>
  `SELECT DISTINCT (hashint8extended(x, 11) & 4294967295) % ${size} + 1 AS id FROM generate_series(1, ${draws}) x`

/** Each repository is equally likely. */
const byRepository = (repositories: number, draws: number) => `
  SELECT (SELECT m.id FROM manifests m JOIN repositories r ON r.account_id = m.account_id AND r.id = m.repository_id
          WHERE r.id = drawn.id LIMIT 1) AS id
  FROM (SELECT DISTINCT (hashint8extended(x, 12) & 4294967295) % ${repositories} + 1 AS id
        FROM generate_series(1, ${draws}) x) drawn`

export async function drawWorld(sql: Bun.SQL, size: number, draws = 2_500): Promise<World> {
  const { repositories, users } = shapeOf(size)
  await sql.unsafe('SET statement_timeout = 0')
  const keys: Key[] = [
    ...(await sql.unsafe(keysOf(byManifest(size, draws)))),
    ...(await sql.unsafe(keysOf(byRepository(repositories, draws)))),
  ]
  for (const key of keys) {
    const { accountId, repositoryId, manifestId, blobId } = key
    Object.assign(key, numbers({ accountId, repositoryId, manifestId, blobId }))
  }
  let chance = seeded(size)
  shuffle(keys, chance)
  const huge = { id: 1, ...(await describeHuge(sql)) }
  const big = await findBig(sql)
  return {
    size,
    draw: () => pick(keys, chance(2) === 0 ? chance(50) : chance(keys.length)),
    chance: (below) => chance(below),
    rewind: () => {
      chance = seeded(size)
    },
    huge,
    big,
    mostLinked: await findMostLinked(sql),
    subject: await findSubject(sql, big),
    users,
  }
}

async function describeHuge(sql: Bun.SQL): Promise<Pick<World['huge'], 'name' | 'names'>> {
  const [account] = await sql.unsafe('SELECT name FROM accounts WHERE id = 1')
  const rows: { name: RepositoryName }[] = await sql.unsafe(
    `SELECT name FROM repositories WHERE account_id = 1 AND id % greatest(1, (SELECT count(*) / 1000 FROM repositories)) = 0
     ORDER BY name`,
  )
  return { name: String(account.name), names: rows.map(({ name }) => name) }
}

async function findBig(sql: Bun.SQL): Promise<World['big']> {
  const [key]: Key[] = await sql.unsafe(`
    SELECT ${keyColumns} FROM repositories r JOIN accounts a ON a.id = r.account_id AND r.id <= 5
    JOIN tags t ON t.account_id = a.id AND t.repository_id = r.id AND t.name = 'v1.0.0'
    JOIN manifests m ON m.account_id = a.id AND m.id = t.manifest_id
    CROSS JOIN LATERAL (SELECT blob_id, digest FROM manifest_entries e
                        WHERE e.account_id = a.id AND e.manifest_id = m.id LIMIT 1) e
    ORDER BY a.state DESC, r.id LIMIT 1`)
  if (key === undefined) throw new Error('no big repository')
  const { accountId, repositoryId, manifestId, blobId } = key
  const tags: { name: Tag }[] = await sql.unsafe(
    `SELECT name FROM (SELECT name, row_number() OVER (ORDER BY name) AS place FROM tags
                       WHERE account_id = ${accountId} AND repository_id = ${repositoryId}) t
     WHERE place % 50 = 0 ORDER BY name`,
  )
  const ids = numbers({ accountId, repositoryId, manifestId, blobId })
  return { ...key, ...ids, tags: tags.map(({ name }) => name) }
}

async function findMostLinked(sql: Bun.SQL): Promise<World['mostLinked']> {
  const [row] = await sql.unsafe(
    `SELECT b.id, b.digest FROM blobs b JOIN (SELECT blob_id, count(*) AS links FROM blob_links
       WHERE account_id = 1 GROUP BY 1 ORDER BY 2 DESC LIMIT 1) l ON l.blob_id = b.id WHERE b.account_id = 1`,
  )
  const id = Number(row.id)
  const rows: { repository_id: number }[] = await sql.unsafe(
    `SELECT repository_id FROM blob_links WHERE account_id = 1 AND blob_id = ${id} ORDER BY repository_id`,
  )
  return { id, digest: row.digest, holders: rows.map((link) => Number(link.repository_id)) }
}

async function findSubject(sql: Bun.SQL, big: Key): Promise<World['subject']> {
  const rows: { digest: Digest }[] = await sql.unsafe(
    `SELECT digest FROM manifests WHERE account_id = ${big.accountId} AND repository_id = ${big.repositoryId}
     AND subject_digest = '${big.digest}' ORDER BY digest`,
  )
  return { digest: big.digest, digests: rows.map(({ digest }) => digest) }
}

/** The driver returns large numbers as text. */
function numbers<K extends string>(given: Record<K, number>): Record<K, number> {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, Number(value)])) as Record<K, number>
}

export function pick<T>(list: readonly T[], at: number): T {
  const found = list[at % list.length]
  if (found === undefined) throw new Error('nothing to draw from')
  return found
}

/** A simple pseudo-random generator with the same sequence in every run. */
function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function shuffle<T>(list: T[], chance: (below: number) => number): void {
  for (const at of list.keys()) {
    const other = chance(at + 1)
    const [one, two] = [pick(list, at), pick(list, other)]
    list[at] = two
    list[other] = one
  }
}
