// Checks of the generated rows: no dangling references, correct counters. Each check must also find a planted fault.

interface Doubt {
  readonly sentence: string
  /** Counts the rows that violate the rule. */
  readonly count: string
  /** Violates the rule, in a transaction that is rolled back. The check must find this. */
  readonly plant: string
}

const doubts: readonly Doubt[] = [
  {
    sentence: 'every entry names a blob that its repository links',
    count: `SELECT count(*) AS faults FROM manifest_entries e
      LEFT JOIN blob_links l USING (account_id, repository_id, blob_id) WHERE e.blob_id IS NOT NULL AND l.blob_id IS NULL`,
    plant: `DELETE FROM blob_links WHERE blob_id = (SELECT min(blob_id) FROM manifest_entries)`,
  },
  {
    sentence: 'every link has its blob',
    count: `SELECT count(*) AS faults FROM blob_links l LEFT JOIN blobs b ON b.account_id = l.account_id AND b.id = l.blob_id
      WHERE b.id IS NULL`,
    plant: `DELETE FROM blobs WHERE id = (SELECT min(blob_id) FROM blob_links)`,
  },
  {
    sentence: 'every tag has its manifest, in its own repository',
    count: `SELECT count(*) AS faults FROM tags t
      LEFT JOIN manifests m ON m.id = t.manifest_id AND m.repository_id = t.repository_id AND m.account_id = t.account_id
      WHERE m.id IS NULL`,
    plant: `UPDATE tags SET manifest_id = 0 WHERE name = 'latest' AND repository_id = 1`,
  },
  {
    sentence: 'every digest of an entry is that of the blob or the manifest it points to',
    count: `SELECT count(*) AS faults FROM (SELECT * FROM manifest_entries WHERE manifest_id % 100 = 1) e
      LEFT JOIN blobs b ON b.account_id = e.account_id AND b.id = e.blob_id
      LEFT JOIN manifests m ON m.account_id = e.account_id AND m.id = e.child_id
      WHERE e.digest IS DISTINCT FROM coalesce(b.digest, m.digest)`,
    plant: `UPDATE manifest_entries SET digest = 'sha256:no' WHERE manifest_id = 1 AND blob_id = 1`,
  },
  {
    sentence: 'repositories with a manifest are marked as images',
    count: `SELECT count(*) AS faults FROM repositories r
      LEFT JOIN (SELECT repository_id, count(*) AS counted FROM manifests GROUP BY 1) m ON m.repository_id = r.id
      WHERE (is_image > 0) <> (coalesce(counted, 0) > 0)`,
    plant: 'UPDATE repositories SET is_image = 0 WHERE id = 1',
  },
  {
    sentence: 'images are counted',
    count: `SELECT count(*) AS faults FROM accounts a
      LEFT JOIN (SELECT account_id, count(*) AS counted FROM repositories WHERE is_image > 0 GROUP BY 1) r
        ON r.account_id = a.id
      LEFT JOIN account_usage u ON u.account_id = a.id
      WHERE coalesce(u.images, 0) <> coalesce(counted, 0)`,
    plant: 'UPDATE account_usage SET images = images + 1 WHERE account_id = 1',
  },
]

export async function checkSoundness(sql: Bun.SQL, size: number): Promise<void> {
  await sql.unsafe("SET work_mem = '768MB'")
  for (const { sentence, count, plant } of doubts) {
    const faults = await countFaults(sql, count)
    if (faults !== 0) throw new Error(`${faults} rows break it: ${sentence}`)
    // The checks are the same at every size, so the planted faults are not repeated at the largest size.
    if (size <= 1_000_000 && (await countPlanted(sql, count, plant)) === 0) {
      throw new Error(`a planted fault was not seen: ${sentence}`)
    }
    console.log(`   sound  ${sentence}`)
  }
  console.log(JSON.stringify(await countRows(sql)))
}

async function countPlanted(sql: Bun.SQL, count: string, plant: string): Promise<number> {
  await sql.unsafe('BEGIN')
  // Without the triggers of the foreign keys, which would refuse the fault.
  await sql.unsafe('SET LOCAL session_replication_role = replica')
  await sql.unsafe(plant)
  const faults = await countFaults(sql, count)
  await sql.unsafe('ROLLBACK')
  return faults
}

async function countFaults(sql: Bun.SQL, count: string): Promise<number> {
  const [row] = await sql.unsafe(count)
  return Number(row.faults)
}

/** The rows of each table, as its last VACUUM counted them, and its size with and without indexes. */
export async function countRows(
  sql: Bun.SQL,
): Promise<Record<string, readonly [rows: number, heap: number, all: number]>> {
  const rows: { name: string; rows: number; heap: number; whole: number }[] = await sql.unsafe(
    `SELECT relname AS name, reltuples::float8 AS rows, pg_relation_size(oid)::float8 AS heap,
            pg_total_relation_size(oid)::float8 AS whole
     FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY whole DESC`,
  )
  return Object.fromEntries(rows.map(({ name, rows: counted, heap, whole }) => [name, [counted, heap, whole] as const]))
}
