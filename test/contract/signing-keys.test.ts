import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { FilesystemSigningKeys } from '../../src/adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import { Unavailable } from '../../src/oci/errors.ts'
import { errorOf } from '../support/outcomes.ts'
import { useTemporaryFolders } from '../support/temporary-folders.ts'
import { keyNamed, signingKeysContract } from './signing-keys.ts'

const temporaryFolder = useTemporaryFolders('keys')

signingKeysContract('filesystem', async () => {
  const path = join(temporaryFolder(), 'identity', 'signing-key.json')
  return { keys: new FilesystemSigningKeys(path), reopen: () => new FilesystemSigningKeys(path) }
})

describe('signing keys, filesystem', () => {
  test('only their owner can read the key and its folder, whatever the umask is', async () => {
    const folder = join(temporaryFolder(), 'identity')
    const umask = process.umask(0)
    await new FilesystemSigningKeys(join(folder, 'key.json'))
      .current(async () => keyNamed('one'))
      .finally(() => process.umask(umask))

    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder, 'key.json')).mode & 0o777).toBe(0o600)
  })

  test('leave nothing but the key behind', async () => {
    const folder = join(temporaryFolder(), 'identity')
    await new FilesystemSigningKeys(join(folder, 'key.json')).current(async () => keyNamed('one'))

    expect(readdirSync(folder)).toEqual(['key.json'])
  })

  test('a half written key of a crash is written over', async () => {
    const folder = join(temporaryFolder(), 'identity')
    mkdirSync(folder)
    await Bun.write(join(folder, 'key.json.new'), '{"kid":"ha')

    const keys = new FilesystemSigningKeys(join(folder, 'key.json'))

    expect(await keys.current(async () => keyNamed('one'))).toEqual(keyNamed('one'))
  })

  test.each(['', '{"kid":"ha', 'no JSON at all'])(
    'a file that holds %j is trouble, and is not replaced by a new key',
    async (content) => {
      const path = join(temporaryFolder(), 'key.json')
      await Bun.write(path, content)

      const fault = await errorOf(new FilesystemSigningKeys(path).current(async () => keyNamed('one')))

      expect(fault).toBeInstanceOf(Unavailable)
      expect(await Bun.file(path).text()).toBe(content)
    },
  )
})
