import { describe, expect, test } from 'bun:test'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildApplication, openStores } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import { nameStore } from '../../../src/app/move-marks.ts'
import { useTemporaryFolders } from '../../support/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('owner')

function configOf(dataDir: string) {
  return readConfig(undefined, { BERTH_DATA_DIR: dataDir, BERTH_LOG__LEVEL: 'silent' })
}

/** Builds all of a server but its port, and takes it down again. */
async function serveOnce(dataDir: string): Promise<void> {
  const built = await buildApplication(configOf(dataDir))
  await built.close()
}

/** As a move does to whose `target` the blobs go, and dies; `abortedTo` is what an abort has noted. */
async function claimFor(target: string, dataDir: string, abortedTo: string): Promise<void> {
  const { metadata, blobs } = await openStores(configOf(dataDir))
  const id = await nameStore(metadata)
  expect(await blobs.claim(target, { mayBeNew: false, formerOwner: id })).toBe(target)
  await metadata.transaction(({ marks }) => marks.put('aborted-to', abortedTo))
  await metadata.close()
  await blobs.close()
}

async function refusal(dataDir: string): Promise<string> {
  return serveOnce(dataDir).then(
    () => 'none',
    (error: unknown) => String(error),
  )
}

describe('a registry and its blob store', () => {
  test('know each other again (the control)', async () => {
    const dataDir = temporaryFolder()
    await serveOnce(dataDir)

    expect(await refusal(dataDir)).toBe('none')
  })

  test('a store that is empty where there should be blobs is not begun anew: the disk may not be mounted', async () => {
    const dataDir = temporaryFolder()
    await serveOnce(dataDir)
    rmSync(join(dataDir, 'blobs'), { recursive: true })

    expect(await refusal(dataDir)).toContain('are in another store')
  })

  test('the store of another registry is refused by name', async () => {
    const [one, other] = [temporaryFolder(), temporaryFolder()]
    await serveOnce(one)
    await serveOnce(other)
    rmSync(join(one, 'blobs'), { recursive: true })
    renameSync(join(other, 'blobs'), join(one, 'blobs'))

    expect(await refusal(one)).toContain('belongs to another registry')
  })

  test('find together again when a move claims the blobs that was aborted meanwhile, and dies', async () => {
    const dataDir = temporaryFolder()
    await serveOnce(dataDir)
    await claimFor('the copy', dataDir, 'the copy')

    expect(await refusal(dataDir)).toBe('none')
    expect(await refusal(dataDir)).toBe('none')
  })

  test('control: nobody else loses them for that', async () => {
    const dataDir = temporaryFolder()
    await serveOnce(dataDir)
    await claimFor('somebody', dataDir, 'the copy')

    expect(await refusal(dataDir)).toContain('belongs to another registry, somebody')
  })
})
