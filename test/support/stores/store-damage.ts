// Damages the stores of a running server from outside, as a broken disk or an operator's mistake would.
import { Database } from 'bun:sqlite'
import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'

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

/** Overwrites the database of a running server, as a broken disk would. The metadata store can no longer be read. */
export function loseMetadata(dataDir: string): void {
  // A commit by another connection makes the server read the pages of the file again.
  damageMetadata(dataDir, 'CREATE TABLE overwritten (id INTEGER)')
  damageMetadata(dataDir, 'PRAGMA wal_checkpoint(TRUNCATE)')
  const path = join(dataDir, 'metadata.sqlite')
  const file = openSync(path, 'r+')
  try {
    writeSync(file, new Uint8Array(fstatSync(file).size).fill(0x2a))
  } finally {
    closeSync(file)
  }
}

/** Makes every user's row unreadable as JSON: a fault that Berth does not foresee. */
export function garbleUsers(dataDir: string): void {
  damageMetadata(dataDir, "UPDATE users SET roles = '[not JSON'")
}

export function moveBlobsAway(dataDir: string): { moveBack(): void } {
  const folder = join(dataDir, 'blobs')
  renameSync(folder, `${folder}-away`)
  return { moveBack: () => renameSync(`${folder}-away`, folder) }
}
