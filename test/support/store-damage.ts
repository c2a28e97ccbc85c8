// Harm done to a running server's stores from outside: what a broken disk or a careless operator would do.
import { Database } from 'bun:sqlite'
import { renameSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { listFiles } from './store-audit.ts'

/** Runs SQL on the metadata store behind the server's back. */
export function damageMetadata(dataDir: string, sql: string): void {
  const database = new Database(join(dataDir, 'metadata.sqlite'))
  try {
    database.run('PRAGMA foreign_keys = OFF')
    database.run(sql)
  } finally {
    database.close()
  }
}

/** The engine cannot find a table any more: the store does not answer. */
export function loseTable(dataDir: string, table: string): void {
  damageMetadata(dataDir, `ALTER TABLE ${table} RENAME TO lost_${table}`)
}

/** Every user's record can be read but not understood: nothing that Berth foresees. */
export function garbleUsers(dataDir: string): void {
  damageMetadata(dataDir, "UPDATE users SET roles = '[not JSON'")
}

export function moveBlobsAway(dataDir: string): { moveBack(): void } {
  const folder = join(dataDir, 'blobs')
  renameSync(folder, `${folder}-away`)
  return { moveBack: () => renameSync(`${folder}-away`, folder) }
}

/** Removes the bytes of every blob; their rows stay. */
export function loseBlobs(dataDir: string): void {
  const root = join(dataDir, 'blobs')
  for (const file of listFiles(dataDir)) unlinkSync(join(root, file.slice(-2), file))
}
