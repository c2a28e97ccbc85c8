// The quota of the first account, as the operator sets it beside the running server.
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { ApiServer } from './api-server.ts'

export async function setQuota(
  server: ApiServer,
  { bytes, repositories, tags }: { readonly bytes?: number; readonly repositories?: number; readonly tags?: number },
): Promise<void> {
  // The first request creates the account.
  await server.ask('GET', '/v2/_catalog')
  const database = new Database(join(server.dataDir, 'metadata.sqlite'))
  database.run('UPDATE accounts SET quota_bytes = ?, quota_repositories = ?, quota_tags = ?', [
    bytes ?? null,
    repositories ?? null,
    tags ?? null,
  ])
  database.close()
}
