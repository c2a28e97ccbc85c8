// What counts as free space: bytes that are announced but not written yet do not.
import { expect, test } from 'bun:test'
import { StatfsDiskSpace } from '../../../../src/adapters/disk-space-statfs/statfs-disk-space.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('disk-space')

test('reserved bytes stay reserved when the disk is measured again, until they are released', () => {
  const folder = temporaryFolder()
  const clock = { now: 0, steadyNow: () => clock.now }
  const [disk] = new StatfsDiskSpace([folder], 1, clock).describe()
  const freeBytes = disk?.freeBytes ?? 0
  const space = new StatfsDiskSpace([folder], Math.floor(freeBytes / 2), clock)
  const bytes = Math.floor(freeBytes * 0.4)

  space.reserve(bytes)
  clock.now += 10_000
  expect(() => space.reserve(bytes)).toThrow('disk')

  space.release(bytes)
  clock.now += 10_000
  space.reserve(bytes)
  expect(space.isLow()).toBe(false)
})
