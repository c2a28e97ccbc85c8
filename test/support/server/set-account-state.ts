// A process of its own that enables or disables an account beside a running server: data folder, account, state.
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import type { Account } from '../../../src/ports/accounts.ts'
import { projectRoot } from '../basics/test-project.ts'

/** Resolves when the other process has written it and is gone. */
export async function setStateElsewhere(dataDir: string, account: string, state: Account['state']): Promise<void> {
  const child = Bun.spawn([process.execPath, import.meta.path, dataDir, account, state], {
    cwd: projectRoot,
    stdout: 'inherit',
    stderr: 'inherit',
  })
  const code = await child.exited
  if (code !== 0) throw new Error(`the other process ended with ${code}`)
}

if (import.meta.main) {
  const [dataDir = '', account = '', state] = process.argv.slice(2)
  const store = await SqlMetadataStore.open(new SqliteDatabase(join(dataDir, 'metadata.sqlite')))
  await store.accounts.setState(account, state === 'enabled' ? 'enabled' : 'disabled')
  await store.close()
}
