import { expect, test } from 'bun:test'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const newFolder = useTemporaryFolders('owner')

/** Builds a server without its port, and closes it. Gives the error, if there is one. */
async function serveOnce(dataDir: string): Promise<string> {
  const config = readConfig(undefined, { BERTH_DATA_DIR: dataDir, BERTH_LOG__LEVEL: 'silent' })
  try {
    await (await buildApplication(config)).close()
    return 'started'
  } catch (error) {
    return String(error)
  }
}

test.each([
  ['is accepted at the next start (control)', () => undefined, 'started'],
  [
    'is refused if its blob store is empty: the disk may not be mounted',
    (blobs: string) => rmSync(blobs, { recursive: true }),
    'are in another store',
  ],
  [
    'is refused if its blob store belongs to another registry',
    (blobs: string, others: string) => {
      rmSync(blobs, { recursive: true })
      renameSync(others, blobs)
    },
    'belongs to another registry',
  ],
])('a registry %s', async (_, damage, outcome) => {
  const [one, other] = [newFolder(), newFolder()]
  expect([await serveOnce(one), await serveOnce(other)]).toEqual(['started', 'started'])
  damage(join(one, 'blobs'), join(other, 'blobs'))

  expect(await serveOnce(one)).toContain(outcome)
})
