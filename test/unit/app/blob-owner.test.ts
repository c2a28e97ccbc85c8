import { describe, expect, test } from 'bun:test'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import { freeze, markAborted, nameStore, thaw } from '../../../src/app/store-move/move-state.ts'
import { openStores } from '../../../src/app/stores.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('owner')

function configOf(dataDir: string) {
  return readConfig(undefined, { BERTH_DATA_DIR: dataDir, BERTH_LOG__LEVEL: 'silent' })
}

/** Builds all of a server but its port, and takes it down again. */
async function serveOnce(dataDir: string): Promise<void> {
  const built = await buildApplication(configOf(dataDir))
  await built.close()
}

const target = 'the copy'

/** A move that is aborted while it claims the blobs for `claimant`, and dies before it sees that. */
async function abortLate(dataDir: string, claimant: string, keepsBlobStore = true): Promise<void> {
  const { metadata, blobs } = await openStores(configOf(dataDir))
  const id = await nameStore(metadata)
  const { move } = await freeze(metadata, { targetId: target, place: 'elsewhere', keepsBlobStore }, systemClock)
  await markAborted(metadata, () => undefined)
  await thaw(metadata, move)
  expect(await blobs.claim(claimant, { mayBeNew: false, formerOwner: id })).toBe(claimant)
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
    await abortLate(dataDir, target)

    expect(await refusal(dataDir)).toBe('none')
    expect(await refusal(dataDir)).toBe('none')
  })

  test('control: nobody else loses them for that, nor by a move to a blob store of its own', async () => {
    for (const [claimant, keepsBlobStore] of [
      ['somebody', true],
      [target, false],
    ] as const) {
      const dataDir = temporaryFolder()
      await serveOnce(dataDir)
      await abortLate(dataDir, claimant, keepsBlobStore)

      expect(await refusal(dataDir)).toContain(`belongs to another registry, ${claimant}`)
    }
  })

  test('the next move to the same place may keep them', async () => {
    const dataDir = temporaryFolder()
    await serveOnce(dataDir)
    await abortLate(dataDir, 'somebody')
    const { metadata, blobs } = await openStores(configOf(dataDir))

    expect(await metadata.marks.find('aborted-to')).toBe(target)
    await freeze(metadata, { targetId: target, place: 'elsewhere', keepsBlobStore: true }, systemClock)
    expect(await metadata.marks.find('aborted-to')).toBeUndefined()

    await metadata.close()
    await blobs.close()
  })
})
