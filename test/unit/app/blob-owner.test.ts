import { describe, expect, test } from 'bun:test'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('owner')

function configOf(dataDir: string) {
  return readConfig(undefined, { BERTH_DATA_DIR: dataDir, BERTH_LOG__LEVEL: 'silent' })
}

/** Builds a server without its port, and closes it. */
async function serveOnce(dataDir: string): Promise<void> {
  const built = await buildApplication(configOf(dataDir))
  await built.close()
}

async function refusal(dataDir: string): Promise<string> {
  return serveOnce(dataDir).then(
    () => 'none',
    (error: unknown) => String(error),
  )
}

describe('a registry and its blob store', () => {
  test('are accepted at the next start (control)', async () => {
    const dataDir = temporaryFolder()
    await serveOnce(dataDir)

    expect(await refusal(dataDir)).toBe('none')
  })

  test('are refused if the blob store is empty: the disk may not be mounted', async () => {
    const dataDir = temporaryFolder()
    await serveOnce(dataDir)
    rmSync(join(dataDir, 'blobs'), { recursive: true })

    expect(await refusal(dataDir)).toContain('are in another store')
  })

  test('are refused if the blob store belongs to another registry, whose id is named', async () => {
    const [one, other] = [temporaryFolder(), temporaryFolder()]
    await serveOnce(one)
    await serveOnce(other)
    rmSync(join(one, 'blobs'), { recursive: true })
    renameSync(join(other, 'blobs'), join(one, 'blobs'))

    expect(await refusal(one)).toContain('belongs to another registry')
  })
})
