// The messages and refusals of `berth migrate-store`. The move itself: test/faults/move-steps.test.ts.
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../../src/adapters/metadata-sql/migrate.ts'
import { digestOf, generatedBytes } from '../../support/basics/generated-bytes.ts'
import { testNeeding } from '../../support/basics/needs.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import {
  moveCommand,
  type Place,
  placeIn,
  placeOnServers,
  readAllRows,
  runMove,
} from '../../support/moves/move-command.ts'
import { postgres } from '../../support/postgres/postgres-server.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'
import { canMount, makeSmallDisk } from '../../support/stores/small-disk.ts'
import { expectMisuse, failed, layEmptyData, succeeded, toArguments } from './workplace.ts'

const newFolder = useTemporaryFolders('command-move')
const newPlace = () => placeIn(newFolder())

async function newSource(): Promise<Place> {
  const place = newPlace()
  await layEmptyData(place.dataDir)
  await run(place, 'user add ann --account acme --role reader')
  return place
}

const run = ({ settings, dataDir }: Place, words: string) => runBerthHere(toArguments([words]), settings, dataDir)
const move = (from: Place, to: Place | undefined, words = '') =>
  runBerthHere(...moveCommand(from, to, ...words.split(' ').filter(Boolean)))
const isOpen = async (place: Place) => (await run(place, 'user disable ann')).exitCode === 0

/** Gives the key under which its bytes are expected. */
async function addBlobRow(place: Place, digest: string, sizeBytes: number): Promise<string> {
  const key = Bun.randomUUIDv7()
  const db = place.look()
  await db.run("INSERT INTO accounts (id, name, state, created_at, changed_at) VALUES (1, 'acme', 'enabled', 0, 0)", [])
  await db.run(
    'INSERT INTO blobs (account_id, digest, size_bytes, storage_key, created_at) VALUES (1, $1, $2, $3, 0)',
    [digest, sizeBytes, key],
  )
  await db.close()
  return key
}

/** A bucket on a server that cannot be reached. */
const unreachable = {
  BERTH_STORAGE__S3__BUCKET: 'images',
  BERTH_STORAGE__S3__ENDPOINT: 'http://127.0.0.1:1',
  BERTH_STORAGE__S3__ACCESS_KEY_ID: 'somebody',
  BERTH_STORAGE__S3__SECRET_ACCESS_KEY: 'canary',
}

const withBucket = (place: Place): Place => ({ ...place, settings: { ...place.settings, ...unreachable } })
const pathOf = (place: Place, key: string) => join(place.dataDir, 'blobs', key.slice(-2), key)
const next = /next: start the servers with \S+, send clients to them, and stop the old servers/

describe('berth migrate-store', () => {
  test('prints its steps and what to do next, and can be run again', async () => {
    const [from, to] = [await newSource(), newPlace()]

    const first = await move(from, to)
    expect(first.exitCode).toBe(0)
    expect(first.stdout).toMatch(/^moved 0 manifests, 0 tags, 0 blobs and 1 users\n/)
    expect(first.stdout).toMatch(next)
    expect(first.stderr).toContain('berth: copying blobs; the registry still accepts changes\n')

    const again = await move(from, to)
    expect(again).toEqual(succeeded(expect.stringMatching(/^the registry was moved already\n/)))
    expect(again.stdout).toMatch(next)
    expect((await run(to, 'user list')).stdout).toContain('ann')
  })

  test('with --prepare leaves the source open and reserves the target', async () => {
    const [from, to] = [await newSource(), newPlace()]

    expect(await move(from, to, '--prepare')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('prepared'),
    })

    expect((await run(from, 'user add bob --account acme')).exitCode).toBe(0)
    const refusal = failed(
      'a registry is being moved to these stores, and the move is not finished: run `berth migrate-store` again first',
    )
    for (const words of ['serve', 'user list', 'gc']) expect([words, await run(to, words)]).toEqual([words, refusal])
    expect((await move(from, to)).stdout).toContain('and 2 users')
  })

  test('closes the source for the changes of every command, until --abort', async () => {
    const [from, to] = [await newSource(), newPlace()]
    await move(from, to)

    const refusal = failed('the registry is being moved to other stores and accepts no changes')
    for (const words of [
      ...['user add late --account acme', 'user disable ann', 'user roles ann writer', 'signing-key rotate', 'gc'],
      ...['key create ann --name late', 'key revoke ann late', 'account enable acme', 'account disable acme'],
    ]) {
      expect([words, await run(from, words)]).toEqual([words, refusal])
    }
    for (const words of ['user list', 'account list', 'gc --dry-run']) {
      expect([words, (await run(from, words)).exitCode]).toEqual([words, 0])
    }

    expect(await move(from, undefined, '--abort')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringContaining(`was moved to ${join(to.dataDir, 'metadata.sqlite')}`),
    })
    expect(await move(from, undefined, '--abort --force')).toEqual(
      succeeded('the registry accepts changes again\n', expect.stringContaining('start no server on the copy')),
    )
    expect(await isOpen(from)).toBe(true)
    expect((await move(from, undefined, '--abort')).stdout).toBe('nothing to abort: the registry accepts changes\n')
    // The target has an old copy, which is not overwritten.
    expect((await move(from, to)).stderr).toContain('the target is not empty: it has users')
  })

  test('refuses a target that is the source, is not empty, or belongs to another move', async () => {
    const [from, other, to] = [await newSource(), await newSource(), newPlace()]
    expect((await move(from, from)).stderr).toBe('berth: both settings files name the same stores\n')
    expect((await move(from, withBucket(from))).stderr).toContain('name a new database too')
    expect((await move(from, other)).stderr).toContain('the target is not empty: it has users')
    expect((await run(other, 'user list')).exitCode).toBe(0)

    await move(from, to, '--prepare')
    expect((await move(other, to)).stderr).toContain('another registry is being moved to the target')
    await move(from, to)
    expect((await move(from, newPlace())).stderr).toContain('the registry was moved to ')
  })

  test('needs a source with data, a target, valid settings and options that fit', async () => {
    const [from, empty] = [await newSource(), newPlace()]
    expect((await move(empty, from)).stderr).toContain('there is no data in')
    expectMisuse(await move(from, undefined), 'name the new stores with --to')
    expectMisuse(await move(from, empty, '--force'), '--force needs --abort')
    expectMisuse(await move(from, empty, '--abort --prepare'), '')
    expectMisuse(await move(from, empty, '--at-once 0'), '')
    const file = join(from.dataDir, 'wrong.yaml')
    writeFileSync(file, 'zzz: 1\n')
    const wrong = {
      BERTH_TO_SERVER__PORT: 'high',
      BERTH_TO_METADATA__URL: 'postgres://u:canary@',
      BERTH_TO_NOTHING: '1',
    }
    const { exitCode, stderr } = await run(
      { ...from, settings: { ...from.settings, ...wrong } },
      `migrate-store --to ${file}`,
    )
    expect(exitCode).toBe(2)
    for (const words of ['zzz', ...Object.keys(wrong), 'BERTH_TO_METADATA__URL: the value (not shown)']) {
      expect(stderr).toContain(`target of the move: ${words}`)
    }
    expect(stderr).not.toContain('canary')
    expect(await isOpen(from)).toBe(true)
  })

  test('refuses a source whose schema is older', async () => {
    const [from, to] = [newPlace(), newPlace()]
    const db = from.look()
    await migrate(db, 2)
    await db.close()

    for (const refused of [await move(from, to), await move(from, undefined, '--abort')]) {
      expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
      expect(refused.stderr).toContain('all its servers must have this version of Berth')
      expect(refused.stderr).toContain('run `berth migrate`')
    }
    expect(await readAllRows(from, 'SELECT version FROM schema_versions')).toHaveLength(2)

    expect((await run(from, 'migrate')).exitCode).toBe(0)
    expect((await move(from, to)).exitCode).toBe(0)
  })

  test('prints both places, and reserves nothing if one of them cannot be used', async () => {
    const [from, other, to] = [await newSource(), await newSource(), newPlace()]

    const { exitCode, stderr } = await move(from, withBucket(to))

    expect(exitCode).toBe(1)
    for (const words of [
      `from ${join(from.dataDir, 'metadata.sqlite')} and `,
      `to ${join(to.dataDir, 'metadata.sqlite')} and http://127.0.0.1:1/images/`,
      'the blob store of the target (--to), http://127.0.0.1:1/images/, cannot be used: the blob store is unavailable',
    ]) {
      expect(stderr).toContain(words)
    }
    expect(stderr).not.toContain('canary')
    // The target is not reserved.
    expect((await move(other, to)).exitCode).toBe(0)
    const unknown = { ...to, settings: { BERTH_DATA_DIR: '/dev/null/berth' } }
    expect((await move(from, unknown)).stderr).toContain('the target (--to) cannot be opened: ')
  })

  // In processes of their own, which leave no file of the disk open.
  testNeeding(canMount(), 'fails if the disk of the target is full, and continues when there is space', async () => {
    const [from, disk] = [await newSource(), makeSmallDisk(3)]
    try {
      const bytes = generatedBytes(4_000_000, 1)
      await Bun.write(pathOf(from, await addBlobRow(from, digestOf(bytes), bytes.length)), bytes)
      const to = placeIn(join(disk.path, 'data'))

      const { exitCode, stderr } = await runMove(from, to, '--prepare')

      expect(exitCode).toBe(1)
      expect(stderr).toMatch(/trying again: the (blob|metadata) store of the target is unavailable/)
      expect(stderr).toContain('the registry still accepts changes: run this again to continue')
      expect(stderr).not.toContain('1 of 1 blobs')
      expect(await isOpen(from)).toBe(true)
      disk.grow(12)
      const moved = { exitCode: 0, stdout: expect.stringContaining('1 blobs and 1 users') }
      expect(await runMove(from, to)).toMatchObject(moved)
    } finally {
      disk.remove()
    }
  })

  test('names blobs that are damaged or missing, and leaves the source open', async () => {
    const [from, to] = [await newSource(), newPlace()]
    const digest = `sha256:${'1'.repeat(64)}`
    const key = await addBlobRow(from, digest, 5)

    const missing = await move(from, to)
    expect(missing.exitCode).toBe(1)
    expect(missing.stderr).toContain(`missing: ${digest} (5 B) of the account acme, at ${key}`)
    expect(missing.stderr).toContain('the registry cannot be moved: 1 blobs are missing or damaged')

    await Bun.write(pathOf(from, key), 'wrong')
    const damaged = await move(from, to)
    expect([damaged.exitCode, damaged.stdout]).toEqual([1, ''])
    expect(damaged.stderr).toContain(`damaged: ${digest}`)
    expect(await isOpen(from)).toBe(true)
    expect(await readAllRows(to, 'SELECT name FROM accounts')).toEqual([])
  })

  testNeeding(postgres, 'never prints or stores a secret of either place', async () => {
    const [from, there] = [await newSource(), await placeOnServers(newFolder(), 'files')]
    const url = String(there.settings['BERTH_METADATA__URL']).replace('berth@', 'berth:canary@')
    const moved = await move(from, { ...there, settings: { ...there.settings, BERTH_METADATA__URL: url } })
    const refused = await move(from, newPlace())

    expect([moved.exitCode, refused.exitCode]).toEqual([0, 1])
    expect(refused.stderr).toContain('the registry was moved to postgres://127.0.0.1:')
    const marks = await readAllRows<{ value: string }>(from, 'SELECT value FROM marks')
    expect(JSON.stringify([moved, refused, marks])).not.toContain('canary')
  })
})
