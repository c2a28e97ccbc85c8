// A Berth on a copy of a generated SQLite database. Its administrator works in the account that has a third of
// everything.
import { Database as Sqlite } from 'bun:sqlite'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '../../test/support/basics/test-project.ts'
import { type Contestant, startBerthContestant } from '../contestants.ts'
import { shuffler } from './registry-shape.ts'
import { sqliteFileOf } from './sqlite-copy.ts'

export interface GrownServer extends Contestant {
  /** The repository of the account with the most manifests. */
  readonly largest: string
  /** Manifests of the account, drawn evenly over all repositories. */
  readonly drawn: readonly DrawnManifest[]
  readonly startMs: number
  /** Starts it again, and sets `startMs`. */
  restart(): Promise<GrownServer>
  /** CPU seconds of one `berth gc`, which runs beside the server. */
  collect(): Promise<number>
}

export interface DrawnManifest {
  readonly repository: string
  readonly tag: string
  readonly digest: string
  /** A blob of its repository. */
  readonly blob: string
}

const drawnCount = 2000
/** Jobs of the server must not run during the measurement. `berth gc` collects. */
const settings = { BERTH_GARBAGE__EVERY: '0', BERTH_GARBAGE__SWEEP_EVERY: '0' }

export async function openGrownServer(folder: string, size: number): Promise<GrownServer> {
  const own = join(folder, 'growth', `${size}`)
  const path = join(own, 'berth', 'metadata.sqlite')
  mkdirSync(own, { recursive: true })
  const name = size.toLocaleString('en-US')
  // The first start creates the administrator.
  mkdirSync(join(own, 'berth'))
  copyFileSync(sqliteFileOf(folder, size), path)
  await (await startBerthContestant(own, settings, name)).stop()
  const facts = prepare(path, size)
  return start()

  async function start(): Promise<GrownServer> {
    const startedAt = performance.now()
    const contestant = await startBerthContestant(own, settings, name)
    const startMs = performance.now() - startedAt
    return {
      ...contestant,
      ...facts,
      startMs,
      async restart() {
        await contestant.stop()
        return start()
      },
      collect: () => collect(join(own, 'berth')),
    }
  }
}

/** Gives the large account to the administrator, and empties the queues, as a collector that keeps up does. */
function prepare(path: string, size: number): Pick<GrownServer, 'largest' | 'drawn'> {
  const database = new Sqlite(path)
  database.run("UPDATE users SET account = (SELECT name FROM accounts WHERE id = 1) WHERE name = 'admin'")
  for (const table of ['blob_queue', 'trash', 'uploads']) database.run(`DELETE FROM ${table}`)
  // The collector has looked at all candidates for untagged manifests.
  database.run(
    `INSERT INTO marks (name, value) SELECT 'untagged-manifests', since || '-' || manifest_id FROM untagged_manifests
     WHERE true ORDER BY since DESC, manifest_id DESC LIMIT 1 ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  )
  const largest = database
    .query<{ name: string }, []>(
      `SELECT r.name FROM repositories r WHERE r.account_id = 1
       ORDER BY (SELECT count(*) FROM manifests m WHERE m.account_id = 1 AND m.repository_id = r.id) DESC LIMIT 1`,
    )
    .get()
  const drawn = drawManifests(database, size)
  database.run('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
  if (largest === null || drawn.length === 0) throw new Error(`${path}: the first account is empty`)
  return { largest: largest.name, drawn }
}

function drawManifests(database: Sqlite, size: number): DrawnManifest[] {
  // A condition on `+blob_id` cannot use an index of all blobs of the account.
  const statement = database.query<DrawnManifest, [number]>(
    `SELECT r.name AS repository, t.name AS tag, m.digest, e.digest AS blob
     FROM manifests m
     CROSS JOIN manifest_entries e ON e.account_id = 1 AND e.manifest_id = m.id AND +e.blob_id IS NOT NULL
     CROSS JOIN tags t ON t.account_id = 1 AND t.manifest_id = m.id
     CROSS JOIN repositories r ON r.id = m.repository_id
     WHERE m.id = ? AND m.account_id = 1 AND m.subject_digest IS NULL LIMIT 1`,
  )
  const drawn: DrawnManifest[] = []
  for (let number = 0; number < size && drawn.length < drawnCount; number++) {
    const found = statement.get(((number * shuffler) % size) + 1)
    if (found !== null) drawn.push(found)
  }
  return drawn
}

async function collect(dataDir: string): Promise<number> {
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'gc', '--lease', '0s'], {
    cwd: projectRoot,
    env: { ...process.env, BERTH_DATA_DIR: dataDir },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const [complaint, code] = await Promise.all([child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`berth gc ended with ${code}: ${complaint}`)
  const usage = child.resourceUsage()
  return Number(usage?.cpuTime.total ?? 0) / 1e6
}
