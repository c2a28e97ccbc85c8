// Folders that are gone when the test file is done.
import { afterAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Called at the top of a test file; each call of what it gives makes one more folder. */
export function useTemporaryFolders(purpose: string): () => string {
  const made: string[] = []
  afterAll(() => {
    for (const folder of made) rmSync(folder, { recursive: true, force: true })
  })
  return () => {
    const folder = mkdtempSync(join(tmpdir(), `berth-${purpose}-`))
    made.push(folder)
    return folder
  }
}
