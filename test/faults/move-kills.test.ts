// A move whose process is killed again and again, and always continues.
import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { FilesystemBlobStore } from '../../src/adapters/blobs-filesystem/filesystem-blob-store.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import { digestOf, generatedBytes, seededRandom } from '../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { killMove, type Place, placeIn, readAllRows, runMove } from '../support/moves/move-command.ts'
import { dumpRows } from '../support/stores/full-registry.ts'
import { addManifest, openShelf } from '../support/stores/metadata-rows.ts'
import { storeWhole } from '../support/stores/stored-objects.ts'

const kills = Number(process.env['KILLS'] ?? 8)
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1_000_000))
const blobs = Number(process.env['MOVED_BLOBS'] ?? 400)
const newFolder = useTemporaryFolders('move-kills')
const random = seededRandom(seed)

interface Copy {
  readonly source_key: string
  readonly storage_key: string
}

async function fill(place: Place): Promise<void> {
  const metadata = await SqlMetadataStore.open(place.look())
  const store = await FilesystemBlobStore.open(join(place.dataDir, 'blobs'))
  const shelf = await openShelf(metadata)
  for (let at = 0; at < blobs; at += 1) {
    const bytes = generatedBytes(200 + at, at)
    const digest = digestOf(bytes)
    const key = await storeWhole(store, bytes)
    const id = await metadata.transaction(async (tables) => {
      const made = await tables.blobs.add(shelf.accountId, digest, { sizeBytes: bytes.length, key })
      if (made === undefined) throw new Error('two blobs are the same')
      await tables.blobs.link(shelf.repository, made.id, digest)
      return made.id
    })
    if (at % 10 === 0) await addManifest(shelf, `image ${at}`, { blobs: [{ id, digest, key }], tag: `v${at}` })
  }
  await metadata.close()
}

async function copiesOf(place: Place): Promise<ReadonlyMap<string, string>> {
  try {
    const rows = await readAllRows<Copy>(place, 'SELECT source_key, storage_key FROM copied_objects')
    return new Map(rows.map((row) => [row.source_key, row.storage_key]))
  } catch {
    // The process was killed before it created the table.
    return new Map()
  }
}

async function isComplete(to: Place): Promise<boolean> {
  const marks = await readAllRows(to, "SELECT name FROM marks WHERE name = 'moved-from'").catch(() => [])
  return marks.length > 0
}

/** When up to `most` more copies have been recorded. */
function afterCopies(to: Place, known: number, most: number): () => Promise<boolean> {
  const goal = known + 1 + Math.floor(random() * most)
  return async () => (await copiesOf(to)).size >= goal
}

/** In one of the steps after the source was closed for changes. */
function afterStart(from: Place): () => Promise<boolean> {
  const pauseMs = Math.floor(random() * 120)
  return async () => {
    const marks = await readAllRows(from, "SELECT name FROM marks WHERE name = 'read-only'")
    if (marks.length > 0) await Bun.sleep(pauseMs)
    return marks.length > 0
  }
}

/** Reads the bytes of every blob. */
async function findBadBlobs(place: Place): Promise<readonly string[]> {
  const store = await FilesystemBlobStore.open(join(place.dataDir, 'blobs'))
  const rows = await readAllRows<{ digest: string; size_bytes: number; storage_key: StorageKey }>(
    place,
    'SELECT digest, size_bytes, storage_key FROM blobs',
  )
  const bad: string[] = []
  for (const { digest, size_bytes, storage_key } of rows) {
    const bytes = await store.open(storage_key, size_bytes)
    const actual = bytes && digestOf(new Uint8Array(await new Response(bytes).arrayBuffer()))
    if (actual !== digest) bad.push(digest)
  }
  return bad
}

describe(`kill -9 of a move, ${kills} times, seed ${seed}`, () => {
  const [from, to] = [placeIn(newFolder()), placeIn(newFolder())]
  const copiedWhenKilled: number[] = []
  const outcomes: (number | 'killed')[] = []

  afterAll(() => console.log(`move: ${blobs} blobs, copied when killed: ${copiedWhenKilled.join(', ')}; seed ${seed}`))

  test(
    'copies no recorded blob again, and ends as if it had not been killed',
    async () => {
      await fill(from)
      const before = await dumpRows(from.look())
      let known: ReadonlyMap<string, string> = new Map()
      for (let round = 0; round < kills; round += 1) {
        const isTime = round < kills / 2 ? afterCopies(to, known.size, blobs / kills) : afterStart(from)
        const outcome = await killMove(from, to, isTime, '--at-once', '2')
        outcomes.push(outcome)
        if (outcome === 0) break
        expect(outcome).toBe('killed')
        // The rows are in the target. What remains is to confirm the move.
        if (await isComplete(to)) break
        const now = await copiesOf(to)
        for (const [source, copy] of known) expect([source, now.get(source)]).toEqual([source, copy])
        known = now
        copiedWhenKilled.push(now.size)
      }

      expect(await runMove(from, to)).toMatchObject({ exitCode: 0 })

      const copies = await readAllRows<{ digest: string; storage_key: string }>(
        to,
        'SELECT digest, storage_key FROM blobs',
      )
      const keys = new Map(copies.map((row) => [row.storage_key, row.digest]))
      const originals = await readAllRows<{ digest: string; storage_key: string }>(
        from,
        'SELECT digest, storage_key FROM blobs',
      )
      const originalKeys = new Map(originals.map((row) => [row.storage_key, row.digest]))
      const after = await dumpRows(to.look(), (key) => keys.get(key) ?? 'nothing')
      expect(after).toEqual(await dumpRows(from.look(), (key) => originalKeys.get(key) ?? 'nothing'))
      expect(await dumpRows(from.look())).toEqual(before)
      for (const [source, copy] of known) expect(keys.get(copy)).toBe(originalKeys.get(source) ?? 'none')
      expect(await findBadBlobs(to)).toEqual([])
      expect((await copiesOf(to)).size).toBe(0)
      // Control: some processes were killed while they copied.
      expect(copiedWhenKilled.filter((count) => count > 0 && count < blobs).length).toBeGreaterThanOrEqual(2)
      expect(outcomes.filter((outcome) => outcome === 'killed').length).toBeGreaterThan(kills / 2 - 1)
    },
    60_000 + kills * 3_000,
  )

  test('finds a copy that is damaged (control)', async () => {
    const [row] = await readAllRows<{ storage_key: string }>(to, 'SELECT storage_key FROM blobs LIMIT 1')
    const key = row?.storage_key ?? ''
    await Bun.write(join(to.dataDir, 'blobs', key.slice(-2), key), 'other bytes')

    expect(await findBadBlobs(to)).toHaveLength(1)
  })
})
