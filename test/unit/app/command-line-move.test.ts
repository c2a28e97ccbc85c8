// The messages and refusals of `berth migrate-store`. The move itself: test/faults/move-steps.test.ts.
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../../src/adapters/metadata-sql/migrate.ts'
import { digestOf, generatedBytes } from '../../support/basics/generated-bytes.ts'
import { testNeeding } from '../../support/basics/needs.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { type Place, placeIn, placeOnServers, readAllRows, runMove } from '../../support/moves/move-command.ts'
import { postgres } from '../../support/postgres/postgres-server.ts'
import { runBerth } from '../../support/server/berth-command.ts'
import { layEmptyData } from '../../support/stores/empty-data.ts'
import { canMount, makeSmallDisk } from '../../support/stores/small-disk.ts'

const newFolder = useTemporaryFolders('command-move')

async function newSource(): Promise<Place> {
  const place = placeIn(newFolder())
  await layEmptyData(place.dataDir)
  await run(place, 'user', 'add', 'ann', '--account', 'acme', '--role', 'reader')
  return place
}

const run = ({ settings, dataDir }: Place, ...args: string[]) => runBerth(args, settings, dataDir)

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

async function addBlobTo(place: Place, bytes: Uint8Array): Promise<void> {
  const key = await addBlobRow(place, digestOf(bytes), bytes.length)
  await Bun.write(join(place.dataDir, 'blobs', key.slice(-2), key), bytes)
}

const next = /next: start the servers with \S+, send clients to them, and stop the old servers/

describe('berth migrate-store', () => {
  test('prints its steps and what to do next, and can be run again', async () => {
    const [from, to] = [await newSource(), placeIn(newFolder())]

    const first = await runMove(from, to)
    expect(first.exitCode).toBe(0)
    expect(first.stdout).toMatch(/^moved 0 manifests, 0 tags, 0 blobs and 1 users\n/)
    expect(first.stdout).toMatch(next)
    expect(first.stderr).toContain('berth: copying blobs; the registry still accepts changes\n')

    const again = await runMove(from, to)
    expect([again.exitCode, again.stderr]).toEqual([0, ''])
    expect(again.stdout).toMatch(/^the registry was moved already\n/)
    expect(again.stdout).toMatch(next)
    expect((await run(to, 'user', 'list')).stdout).toContain('ann')
  })

  test('with --prepare leaves the source open and reserves the target', async () => {
    const [from, to] = [await newSource(), placeIn(newFolder())]

    expect(await runMove(from, to, '--prepare')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('prepared'),
    })

    expect((await run(from, 'user', 'add', 'bob', '--account', 'acme')).exitCode).toBe(0)
    for (const command of [['serve'], ['user', 'list'], ['gc']]) {
      const { exitCode, stderr } = await run(to, ...command)
      expect([command, exitCode, stderr]).toEqual([
        command,
        1,
        'berth: a registry is being moved to these stores, and the move is not finished: run `berth migrate-store` again first\n',
      ])
    }
    expect((await runMove(from, to)).stdout).toContain('and 2 users')
  })

  test('closes the source for the changes of every command, until --abort', async () => {
    const [from, to] = [await newSource(), placeIn(newFolder())]
    await runMove(from, to)

    const commands = [
      ['user', 'add', 'late', '--account', 'acme'],
      ['user', 'disable', 'ann'],
      ['user', 'roles', 'ann', 'writer'],
      ['key', 'create', 'ann', '--name', 'late'],
      ['key', 'revoke', 'ann', 'late'],
      ['account', 'enable', 'acme'],
      ['account', 'disable', 'acme'],
      ['signing-key', 'rotate'],
      ['gc'],
    ]
    for (const command of commands) {
      expect([command, await run(from, ...command)]).toEqual([
        command,
        {
          exitCode: 1,
          stdout: '',
          stderr: 'berth: the registry is being moved to other stores and accepts no changes\n',
        },
      ])
    }
    for (const command of [
      ['user', 'list'],
      ['account', 'list'],
      ['gc', '--dry-run'],
    ]) {
      expect([command, (await run(from, ...command)).exitCode]).toEqual([command, 0])
    }

    const refused = await runMove(from, undefined, '--abort')
    expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain(`was moved to ${join(to.dataDir, 'metadata.sqlite')}`)
    const forced = await runMove(from, undefined, '--abort', '--force')
    expect([forced.exitCode, forced.stdout]).toEqual([0, 'the registry accepts changes again\n'])
    expect(forced.stderr).toContain('start no server on the copy')
    expect((await run(from, 'user', 'disable', 'ann')).exitCode).toBe(0)
    expect((await runMove(from, undefined, '--abort')).stdout).toBe('nothing to abort: the registry accepts changes\n')
    // The target has an old copy, which is not overwritten.
    expect((await runMove(from, to)).stderr).toContain('the target is not empty: it has users')
  })

  test('refuses a target that is the source, is not empty, or belongs to another move', async () => {
    const [from, other] = [await newSource(), await newSource()]
    const to = placeIn(newFolder())
    expect((await runMove(from, from)).stderr).toBe('berth: both settings files name the same stores\n')
    expect((await runMove(from, other)).stderr).toContain('the target is not empty: it has users')
    expect((await run(other, 'user', 'list')).exitCode).toBe(0)

    await runMove(from, to, '--prepare')
    expect((await runMove(other, to)).stderr).toContain('another registry is being moved to the target')
    await runMove(from, to)
    expect((await runMove(from, placeIn(newFolder()))).stderr).toContain('the registry was moved to ')
  })

  test('needs a source with data, a target, and valid settings', async () => {
    const from = await newSource()
    const empty = placeIn(newFolder())
    expect((await runMove(empty, from)).stderr).toContain('there is no data in')
    expect(await runMove(from, undefined)).toMatchObject({
      exitCode: 2,
      stderr: 'berth: name the new stores with --to\n',
    })
    const file = join(from.dataDir, 'wrong.yaml')
    writeFileSync(file, 'zzz: 1\n')
    const environment = {
      ...from.settings,
      BERTH_TO_SERVER__PORT: 'high',
      BERTH_TO_METADATA__URL: 'postgres://u:canary@',
    }
    const { exitCode, stderr } = await runBerth(['migrate-store', '--to', file], environment, from.dataDir)
    expect(exitCode).toBe(2)
    for (const words of [
      'target of the move: zzz',
      'BERTH_TO_SERVER__PORT',
      'BERTH_TO_METADATA__URL: the value (not shown)',
    ]) {
      expect(stderr).toContain(words)
    }
    expect(stderr).not.toContain('canary')
    expect((await runMove(from, empty, '--at-once', '0')).exitCode).toBe(2)
  })

  test('refuses a source whose schema is older', async () => {
    const [from, to] = [placeIn(newFolder()), placeIn(newFolder())]
    const db = from.look()
    await migrate(db, 2)
    await db.close()

    for (const refused of [await runMove(from, to), await runMove(from, undefined, '--abort')]) {
      expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
      expect(refused.stderr).toContain('all its servers must have this version of Berth')
      expect(refused.stderr).toContain('run `berth migrate`')
    }
    expect(await readAllRows(from, 'SELECT version FROM schema_versions')).toHaveLength(2)

    expect((await run(from, 'migrate')).exitCode).toBe(0)
    expect((await runMove(from, to)).exitCode).toBe(0)
  })

  test('prints both places, and reserves nothing if one of them cannot be used', async () => {
    const [from, other, to] = [await newSource(), await newSource(), placeIn(newFolder())]
    const nowhere = {
      BERTH_STORAGE__S3__BUCKET: 'images',
      BERTH_STORAGE__S3__ENDPOINT: 'http://127.0.0.1:1',
      BERTH_STORAGE__S3__ACCESS_KEY_ID: 'somebody',
      BERTH_STORAGE__S3__SECRET_ACCESS_KEY: 'canary',
    }

    const { exitCode, stderr } = await runMove(from, { ...to, settings: { ...to.settings, ...nowhere } })

    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining(`from ${join(from.dataDir, 'metadata.sqlite')} and `),
    ])
    expect(stderr).toContain(`to ${join(to.dataDir, 'metadata.sqlite')} and http://127.0.0.1:1/images/`)
    expect(stderr).toMatch(
      /the blob store of the target \(--to\), http:.*, cannot be used: the blob store is unavailable/,
    )
    expect(stderr).not.toContain('canary')
    // The target is not reserved.
    expect((await runMove(other, to)).exitCode).toBe(0)
    const unknown = { ...to, settings: { BERTH_DATA_DIR: '/dev/null/berth' } }
    expect((await runMove(from, unknown)).stderr).toContain('the target (--to) cannot be opened: ')
  })

  test('takes --force only with --abort, and --abort not with --prepare', async () => {
    const [from, to] = [await newSource(), placeIn(newFolder())]
    expect(await runMove(from, to, '--force')).toMatchObject({
      exitCode: 2,
      stderr: 'berth: --force needs --abort\n',
    })
    expect((await runMove(from, to, '--abort', '--prepare')).exitCode).toBe(2)
    expect(await readAllRows(from, "SELECT name FROM marks WHERE name = 'read-only'")).toEqual([])
  })

  testNeeding(canMount(), 'fails if the disk of the target is full, and continues when there is space', async () => {
    const [from, disk] = [await newSource(), makeSmallDisk(3)]
    try {
      await addBlobTo(from, generatedBytes(4_000_000, 1))
      const to = placeIn(join(disk.path, 'data'))

      const { exitCode, stderr } = await runMove(from, to, '--prepare')

      expect(exitCode).toBe(1)
      expect(stderr).toMatch(/trying again: the (blob|metadata) store of the target is unavailable/)
      expect(stderr).toContain('the registry still accepts changes: run this again to continue')
      expect(stderr).not.toContain('1 of 1 blobs')
      expect((await run(from, 'user', 'disable', 'ann')).exitCode).toBe(0)
      disk.grow(12)
      expect(await runMove(from, to)).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining('1 blobs and 1 users'),
      })
    } finally {
      disk.remove()
    }
  })

  test('names blobs that are damaged or missing, and leaves the source open', async () => {
    const [from, to] = [await newSource(), placeIn(newFolder())]
    const digest = `sha256:${'1'.repeat(64)}`
    const key = await addBlobRow(from, digest, 5)

    const missing = await runMove(from, to)
    expect(missing.exitCode).toBe(1)
    expect(missing.stderr).toContain(`missing: ${digest} (5 B) of the account acme, at ${key}`)
    expect(missing.stderr).toContain('the registry cannot be moved: 1 blobs are missing or damaged')

    await Bun.write(join(from.dataDir, 'blobs', key.slice(-2), key), 'wrong')
    const damaged = await runMove(from, to)
    expect([damaged.exitCode, damaged.stdout]).toEqual([1, ''])
    expect(damaged.stderr).toContain(`damaged: ${digest}`)
    expect((await run(from, 'user', 'disable', 'ann')).exitCode).toBe(0)
    expect(await readAllRows(to, 'SELECT name FROM accounts')).toEqual([])
  })

  testNeeding(postgres, 'needs a new database even if only the blobs are moved', async () => {
    const from = await placeOnServers(newFolder(), 'files')
    await run(from, 'user', 'add', 'ann', '--account', 'acme')
    const to: Place = { ...from, settings: { ...from.settings, BERTH_DATA_DIR: newFolder() } }

    const { exitCode, stderr } = await runMove(from, to)

    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('name a new database too')])
    expect((await run(from, 'user', 'disable', 'ann')).exitCode).toBe(0)
  })

  testNeeding(postgres, 'never prints or stores a secret of either place', async () => {
    const from = await newSource()
    const there = await placeOnServers(newFolder(), 'files')
    const url = String(there.settings['BERTH_METADATA__URL']).replace('berth@', 'berth:canary@')
    const to: Place = { ...there, settings: { ...there.settings, BERTH_METADATA__URL: url } }

    const moved = await runMove(from, to)
    const refused = await runMove(from, placeIn(newFolder()))

    expect([moved.exitCode, refused.exitCode]).toEqual([0, 1])
    expect(refused.stderr).toContain('the registry was moved to postgres://127.0.0.1:')
    expect(moved.stdout + moved.stderr + refused.stdout + refused.stderr).not.toContain('canary')
    const marks = await readAllRows<{ value: string }>(from, 'SELECT value FROM marks')
    expect(JSON.stringify(marks)).not.toContain('canary')
  })
})
