// The statements that fill the tables. Values are computed from row numbers, so related rows are known without a query.
import { type Shape, shuffler } from './registry-shape.ts'

const day = 86_400_000

/** Whether an account is disabled. The collector removes nothing from such an account. */
export const isDisabled = (account: string) => `(${account} > 1 AND ${account} % 5 = 0)`

/** Values that several tables need. This table is dropped when the others are filled. */
export function scaffold({ size, accounts, repositories, emptyRepositories, ...shape }: Shape): [string, string][] {
  const count = `greatest(1, floor(${shape.constant} / (r + ${shape.flattening})))::bigint`
  const surplus = `CASE WHEN r = 1 THEN ${shape.surplus} ELSE 0 END`
  return [
    [
      'functions',
      `CREATE SCHEMA scale;
       CREATE FUNCTION scale.now() RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT ${Date.now()}::bigint';
       CREATE FUNCTION scale.u(x bigint, salt bigint) RETURNS float8 IMMUTABLE LANGUAGE sql
         AS 'SELECT (hashint8extended(x, salt) & 4294967295)::float8 / 4294967296';
       CREATE FUNCTION scale.digest(kind text, x bigint) RETURNS text IMMUTABLE LANGUAGE sql
         AS $$SELECT 'sha256:' || encode(sha256(convert_to(kind || x, 'UTF8')), 'hex')$$;
       CREATE FUNCTION scale.uuid(kind text, x bigint) RETURNS text IMMUTABLE LANGUAGE sql
         AS $$SELECT overlay(md5(kind || x)::uuid::text PLACING '0193' || lpad(to_hex(x), 4, '0') FROM 1 FOR 8)$$;
       CREATE FUNCTION scale.id(slot bigint) RETURNS bigint IMMUTABLE LANGUAGE sql
         AS 'SELECT (slot * ${shuffler}) % ${size} + 1'`,
    ],
    [
      'scale.repositories',
      `CREATE TABLE scale.repositories AS
       SELECT r AS id, count, sum(count) OVER (ORDER BY r) - count AS first_slot,
              CASE WHEN scale.u(r, 1) < 1 / 3.0 THEN 1
                   ELSE 1 + floor(power(${accounts - 1}, scale.u(r, 2)))::bigint END AS account
       FROM (SELECT r, CASE WHEN r > ${repositories} THEN 0 ELSE ${count} + ${surplus} END AS count
             FROM generate_series(1::bigint, ${repositories + emptyRepositories}) r) ranked`,
    ],
    [
      'scale.slots',
      `CREATE TABLE scale.slots AS
       SELECT scale.id(r.first_slot::bigint + i) AS id, r.first_slot::bigint + i AS slot, i AS position, r.id AS repository,
              r.account, CASE i % 10 WHEN 8 THEN 1 WHEN 9 THEN 2 ELSE 0 END AS kind
       FROM scale.repositories r, generate_series(0, r.count - 1) i ORDER BY 1`,
    ],
    [
      'scale.accounts',
      `CREATE TABLE scale.accounts AS
       SELECT account, pool, sum(pool) OVER (ORDER BY account) - pool AS first_layer
       FROM (SELECT account, 8 + 8 * ceil(sum(count) / 10)::bigint AS pool FROM scale.repositories GROUP BY 1) sized;
       ANALYZE scale.repositories; ANALYZE scale.slots; ANALYZE scale.accounts`,
    ],
  ]
}

/** `layers`: the number of layers of all accounts together. */
export function fill(shape: Shape, layers: number): [string, string][] {
  return [...fillPeople(shape), ...fillManifests(shape, layers), ...fillBlobs(shape), ...fillHousekeeping(shape)]
}

function fillPeople({ accounts, users }: Shape): [string, string][] {
  return [
    [
      'accounts',
      `INSERT INTO accounts (id, name, state, created_at, changed_at)
       SELECT a, md5('account' || a)::uuid::text, CASE WHEN ${isDisabled('a')} THEN 'disabled' ELSE 'enabled' END,
              scale.now() - 400 * ${day}::bigint, scale.now()
       FROM generate_series(1, ${accounts}) a`,
    ],
    [
      'account_usage',
      `INSERT INTO account_usage (account_id, images, manifests, tags, bytes, stored_bytes)
       SELECT account, count(*), 0, 0, 0, 0 FROM scale.repositories WHERE count > 0 GROUP BY 1`,
    ],
    [
      'users',
      `INSERT INTO users (id, name, password_hash, roles, account, created_at)
       SELECT u, 'user-' || u, '$argon2id$v=19$m=19456,t=2,p=1$' || md5('salt' || u) || md5('hash' || u), '["writer"]',
              md5('account' || 1 + floor(power(${accounts - 1}, scale.u(u, 3)))::bigint)::uuid::text, scale.now()
       FROM generate_series(1::bigint, ${users}) u`,
    ],
    [
      'api_keys',
      `INSERT INTO api_keys (user_id, name, secret_hash, created_at, rights)
       SELECT u, 'key-' || k, encode(sha256(convert_to('key' || u || '-' || k, 'UTF8')), 'hex'), scale.now(), '["pull"]'
       FROM generate_series(1::bigint, ${users}) u, generate_series(1, 2) k`,
    ],
  ]
}

/** The payload is 500 to 799 bytes of filler, the size of a manifest with three or four descriptors. */
function fillManifests({ size, repositories }: Shape, layers: number): [string, string][] {
  const popular = (seed: string, salt: string) => `8 * floor(a.pool / 8 * power(scale.u(${seed}, ${salt}), 2))::bigint`
  // Two successive pushes share the first layer. The others are any layers of the account; some are linked far more
  // often.
  const drawn = `CASE t WHEN 1 THEN ${popular('s.repository * 1000003 + s.position / 2', '4')} + 1
                        ELSE ${popular('s.id', '4 + t')} + t END`
  const layer = (chosen: string) => `${size} + 1 + ((a.first_layer::bigint + ${chosen}) * ${shuffler}) % ${layers}`
  return [
    [
      'repositories',
      `INSERT INTO repositories (id, account_id, name, is_image, created_at)
       SELECT id, account, format('team-%s/%s-%s', lpad(floor(scale.u(id, 5) * 200)::text, 3, '0'),
                (ARRAY['api', 'web', 'worker', 'cron', 'proxy', 'base_image'])[1 + id % 6], to_hex(id)), count,
              scale.now() - CASE WHEN count > 0 OR ${isDisabled('account')} OR id % 60 = 2 THEN 60 ELSE 0 END * ${day}::bigint
       FROM scale.repositories`,
    ],
    [
      'manifests',
      `INSERT INTO manifests (id, account_id, repository_id, digest, media_type, size_bytes, subject_digest, artifact_type,
                              annotations, pushed_at, payload)
       SELECT id, account, repository, scale.digest('m', id),
              'application/vnd.oci.image.' || CASE kind WHEN 1 THEN 'index' ELSE 'manifest' END || '.v1+json',
              500 + id % 300,
              CASE WHEN kind = 2 THEN scale.digest('m', scale.id(slot - CASE WHEN repository <= 5 THEN position ELSE 2 END)) END,
              CASE WHEN kind = 2 THEN 'application/' ||
                (ARRAY['spdx+json', 'vnd.dev.cosign.artifact.sig.v1+json', 'vnd.in-toto+json'])[1 + id % 3] END,
              CASE WHEN kind = 2 THEN '{"org.opencontainers.image.created":"2026-01-01T00:00:00Z"}' END,
              scale.now() - (${size} - id) * ${Math.ceil((400 * day) / size)},
              convert_to(substr(repeat(md5(id::text), 25), 1, (500 + id % 300)::int), 'UTF8')
       FROM scale.slots`,
    ],
    [
      'manifest_entries',
      `INSERT INTO manifest_entries (account_id, repository_id, manifest_id, digest, blob_id, child_id)
       SELECT account, repository, id,
              CASE WHEN child IS NULL THEN scale.digest('b', blob) ELSE scale.digest('m', child) END, blob, child
       FROM (SELECT s.account, s.repository, s.id,
                    CASE WHEN s.kind = 1 THEN NULL WHEN t = 0 THEN s.id
                         WHEN s.kind = 2 THEN ${layer('0')} ELSE ${layer(`(${drawn})`)} END AS blob,
                    CASE WHEN s.kind = 1 THEN scale.id(s.slot - 1 - t) END AS child
             FROM scale.slots s JOIN scale.accounts a ON a.account = s.account,
                  generate_series(0, CASE WHEN s.kind = 0 THEN 2 + s.id % 4 ELSE 1 END) t OFFSET 0) entries`,
    ],
    [
      'tags',
      `INSERT INTO tags (account_id, repository_id, name, manifest_id, updated_at)
       SELECT account, repository, 'v1.' || position || '.0', id, scale.now() FROM scale.slots WHERE position % 2 = 0
       UNION ALL
       SELECT account, id, 'latest', scale.id(first_slot::bigint + (count - 1) / 10 * 10), scale.now()
       FROM scale.repositories WHERE id <= ${repositories}`,
    ],
  ]
}

function fillBlobs({ size, repositories, emptyRepositories, looseBlobs }: Shape): [string, string][] {
  // Blobs without a manifest. Half of them are linked, as between the push of a layer and the push of its manifest.
  const loose = `
    SELECT 3::bigint * ${size} + x AS id, r.account, r.id AS repository, x % 2 = 0 OR r.id > ${repositories} AS is_linked
    FROM (SELECT x, CASE WHEN x <= ${emptyRepositories} AND x % 3 = 1 THEN ${repositories} + x
                         ELSE x * ${shuffler} % ${repositories} + 1 END AS repository
          FROM generate_series(1::bigint, ${looseBlobs}) x) l
    JOIN scale.repositories r ON r.id = l.repository`
  // One twelfth of the pushed blobs is also mounted into the next repository of the account.
  const row = `scale.digest('b', id), 1000 + id % 50000000, scale.uuid('key', id), scale.now() - 90 * ${day}::bigint`
  return [
    ['scale.loose', `CREATE TABLE scale.loose AS ${loose}; ANALYZE scale.loose`],
    [
      'blob_links',
      `INSERT INTO blob_links (account_id, repository_id, blob_id, leased_at)
       SELECT account_id, repository_id, blob_id, scale.now() - 90 * ${day}::bigint FROM manifest_entries
       WHERE blob_id IS NOT NULL GROUP BY 1, 2, 3
       UNION ALL
       SELECT s.account, n.next, s.id, scale.now() - 90 * ${day}::bigint FROM scale.slots s JOIN (
         SELECT id, lead(id) OVER (PARTITION BY account ORDER BY id) AS next FROM scale.repositories WHERE count > 0
       ) n ON n.id = s.repository AND next IS NOT NULL WHERE s.id % 12 = 0 AND kind <> 1
       UNION ALL
       SELECT account, repository, id, scale.now() - ${ageInQueue} FROM scale.loose WHERE is_linked`,
    ],
    [
      'blobs',
      `INSERT INTO blobs (id, account_id, digest, size_bytes, storage_key, created_at)
       SELECT id, account, ${row} FROM scale.slots WHERE kind <> 1
       UNION ALL
       SELECT id, account, ${row} FROM (SELECT blob_id AS id, account_id AS account FROM blob_links
         WHERE blob_id > ${size} AND blob_id <= 3::bigint * ${size} GROUP BY 1, 2 ORDER BY 1) layers
       UNION ALL
       SELECT id, account, ${row} FROM scale.loose`,
    ],
    [
      'blob_queue',
      `INSERT INTO blob_queue (account_id, blob_id, queued_at)
       SELECT account, id, scale.now() - ${ageInQueue} FROM scale.loose
       UNION ALL
       SELECT account, id, scale.now() - ${ageInQueue} FROM scale.slots WHERE kind <> 1 AND id % 200 = 0`,
    ],
  ]
}

/**
 * No queued blob is older than a lease, as with a collector that keeps up. The queues of disabled accounts only grow.
 */
const ageInQueue = `(${day} * CASE WHEN ${isDisabled('account')} THEN 30 + 60 * scale.u(id, 6)
                                   ELSE 1.01 * scale.u(id, 6) END)::bigint`

function fillHousekeeping({ repositories, emptyRepositories, uploads, trash }: Shape): [string, string][] {
  const repository = `CASE WHEN x <= ${emptyRepositories} AND x % 3 = 0 THEN ${repositories} + x
                           ELSE x * ${shuffler} % ${repositories} + 1 END`
  // One tenth is open. Committed uploads are kept for an hour, those of disabled accounts for ever.
  const age = `(${day} * CASE WHEN ${isDisabled('account')} THEN 20 + 60 * scale.u(x, 7)
                              WHEN isOpen THEN scale.u(x, 7) ELSE scale.u(x, 7) / 24 END)::bigint`
  return [
    [
      'uploads',
      `INSERT INTO uploads (account_id, id, repository_id, subject, storage_key, received_bytes, done_digest,
                            created_at, touched_at)
       SELECT account, scale.uuid('upload', x), repository, 'user-' || x % 1000, CASE WHEN isOpen THEN scale.uuid('open', x) END,
              x % 100000, CASE WHEN isOpen THEN NULL ELSE scale.digest('u', x) END,
              scale.now() - ${age}, scale.now() - ${age}
       FROM (SELECT x, r.account, r.id AS repository, x % 10 = 0 OR r.id > ${repositories} AS isOpen
             FROM generate_series(1::bigint, ${uploads}) x JOIN scale.repositories r ON r.id = ${repository}) u`,
    ],
    [
      'trash',
      `INSERT INTO trash (storage_key, trashed_at)
       SELECT scale.uuid('trash', x), scale.now() - (${day} * 1.01 * scale.u(x, 8))::bigint
       FROM generate_series(1::bigint, ${trash}) x`,
    ],
  ]
}
