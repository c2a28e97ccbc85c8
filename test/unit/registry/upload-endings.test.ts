// Every cell of the table that says how a turn at an upload ends, provoked in a real turn and compared with what is left.
import { describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { RegistryRefusal, Spoiled, Unavailable } from '../../../src/oci/errors.ts'
import type { BlobWriter } from '../../../src/ports/blob-store.ts'
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import { type Ending, endings, type TurnEvent, type TurnState } from '../../../src/registry/upload-endings.ts'
import { appendToUpload, finishUpload, startUpload, uploadAtOnce } from '../../../src/registry/uploads.ts'
import { digestOf, generatedBytes } from '../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { before, beforeCall } from '../../support/clocks/gates.ts'
import { countRows, listFiles } from '../../support/stores/store-audit.ts'
import { bodyOf, openWorld, scopeOf, type World } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('endings')
const whole = generatedBytes(15)
const cells = (Object.keys(endings) as TurnState[]).flatMap((state) =>
  (Object.entries(endings[state]) as [TurnEvent, Ending][]).map(([event, ending]) => ({ state, event, ending })),
)

const faults: Readonly<Partial<Record<TurnEvent, () => Error>>> = {
  cut: () => new RegistryRefusal('body-incomplete'),
  refused: () => new RegistryRefusal('blob-too-large'),
  'store failed': () => new Unavailable('blob-store', { cause: new Error('a test') }),
  spoiled: () => new Spoiled('a part is gone'),
  'turn lost': () => new RegistryRefusal('upload-unknown'),
}

/** Where a turn comes by in each state. */
type Step = 'openWriter' | 'body' | 'flush' | 'finish'
const steps: Readonly<Record<TurnState, Step>> = {
  opening: 'openWriter',
  appending: 'body',
  recording: 'flush',
  closing: 'body',
  committing: 'finish',
  single: 'body',
}

interface Cell {
  readonly state: TurnState
  readonly event: TurnEvent
}

/** A world in which this step meets its fault, and in which everything that cleans up may fail as well. */
async function openFailingUpload({ state, event }: Cell, failsToCleanUp: boolean) {
  const world = await openWorld(temporaryFolder())
  const owner = { ...(await scopeOf(world)), subject: 'alice' }
  const stoodAt = state === 'single' ? 0 : 10
  const id = state === 'single' ? undefined : (await startUpload(world, owner, 'free')).id
  if (id !== undefined) await appendToUpload(world, owner, id, bodyOf(whole.subarray(0, stoodAt)))
  const fault = faults[event]?.()
  const seen = { rewinds: 0, hasMet: false }
  const meet = async (step: Step): Promise<void> => {
    if (step !== steps[state] || fault === undefined) return
    seen.hasMet = true
    throw fault
  }
  const fail = async (): Promise<void> => {
    if (failsToCleanUp && seen.hasMet) throw new Unavailable('blob-store', { cause: new Error('cleaning up failed') })
  }
  const close = async (writer: BlobWriter): Promise<void> => {
    if (!failsToCleanUp) return
    await writer.close()
    throw new Unavailable('blob-store', { cause: new Error('closing failed') })
  }
  const needs = {
    ...world,
    metadata: failingMetadata(world.metadata, fail, meet),
    blobs: failingBlobs(world, { fail, meet, close }, seen),
  }
  const chunk = { ...bodyOf(), lengthBytes: 15 - stoodAt, body: Object.assign(pieces(), { cancel: () => undefined }) }
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield whole.slice(stoodAt)
    await meet('body')
  }
  return { world, owner, id, needs, chunk, fault, seen, stoodAt }
}

function failingMetadata(
  metadata: MetadataStore,
  fail: () => Promise<void>,
  meet: (step: Step) => Promise<void>,
): MetadataStore {
  const failing = ['holdsTurn', 'releaseTurn', 'remove'].reduce(
    (inner, method) => before(inner, 'uploads', method, fail),
    metadata,
  )
  return before(failing, 'uploads', 'commit', () => meet('finish'))
}

interface Failures {
  readonly fail: () => Promise<void>
  readonly close: (writer: BlobWriter) => Promise<void>
  readonly meet: (step: Step) => Promise<void>
}

function failingBlobs({ blobs }: World, { fail, close, meet }: Failures, seen: { rewinds: number }) {
  const rewind = async () => {
    seen.rewinds += 1
    await fail()
  }
  return {
    read: blobs.read.bind(blobs),
    has: blobs.has.bind(blobs),
    async openWriter(...asked: Parameters<World['blobs']['openWriter']>): Promise<BlobWriter> {
      await meet('openWriter')
      const inner = await blobs.openWriter(...asked)
      const flushing = beforeCall(inner, 'flush', () => meet('flush'))
      return beforeCall(beforeCall(flushing, 'rollBack', rewind), 'close', () => close(inner))
    },
  }
}

/** Provokes the cell, and reports the state of the session and of the bytes, and the answer to the caller. */
async function provoke(cell: Cell, failsToCleanUp = false): Promise<Ending> {
  const { state, event } = cell
  const failing = await openFailingUpload(cell, failsToCleanUp)
  const { world, owner, id, needs, chunk, fault } = failing
  const digest = event === 'digest differs' ? digestOf('other bytes') : digestOf(whole)
  const asked =
    id === undefined
      ? uploadAtOnce(needs, owner, digest, chunk)
      : ['closing', 'committing'].includes(state)
        ? finishUpload(needs, owner, id, digest, chunk)
        : appendToUpload(needs, owner, id, chunk)
  const answer = await asked.then(
    () => 'success' as const,
    (error: unknown) => answerOf(error, fault),
  )
  const session = sessionOf(world)
  return { session, bytes: bytesOf(failing, session), answer }
}

function answerOf(error: unknown, fault: Error | undefined): Ending['answer'] {
  if (error instanceof RegistryRefusal && error.refusal === 'upload-unknown') return 'upload-unknown'
  if (error instanceof RegistryRefusal && error.refusal === 'digest-mismatch') return 'fault'
  if (error === fault) return 'fault'
  // A fault that leaves the bytes of a chunk in the session says how many bytes are safe now.
  const isSameKind =
    error instanceof RegistryRefusal && fault instanceof RegistryRefusal && error.refusal === fault.refusal
  if (isSameKind && error.details[0]?.['kept'] === 15) return 'fault'
  if (error instanceof Unavailable && error.cause === fault) return 'unavailable'
  throw error
}

function sessionOf({ dataDir }: World): Ending['session'] {
  const is = (condition: string) => countRows(dataDir, 'uploads', condition) === 1
  if (is('done_digest IS NOT NULL')) return 'blob'
  if (is('received_bytes = 15 AND turn_until = 0')) return 'grown'
  if (is('received_bytes = 10 AND turn_until = 0')) return 'as before'
  return countRows(dataDir, 'uploads') === 0 ? 'removed' : 'untouched'
}

function bytesOf(
  { world, seen, stoodAt }: Awaited<ReturnType<typeof openFailingUpload>>,
  session: Ending['session'],
): Ending['bytes'] {
  const [size] = listFiles(world.dataDir).map((key) => statSync(join(world.dataDir, 'blobs', key.slice(-2), key)).size)
  if (session === 'removed') return countRows(world.dataDir, 'trash') === 1 ? 'removed' : 'untouched'
  if (session === 'grown' || session === 'blob') return size === 15 ? 'kept' : 'untouched'
  if (session === 'untouched') return seen.rewinds === 0 ? 'untouched' : 'dropped'
  return size === stoodAt ? 'dropped' : 'untouched'
}

describe('a turn at an upload', () => {
  test.each(cells)('that is $state: $event', async ({ ending, ...cell }) => {
    expect(await provoke(cell)).toEqual(ending)
  })

  test.each(cells)('that is $state: $event; the answer is the same where cleaning up fails', async (given) => {
    const { ending, ...cell } = given
    expect((await provoke(cell, true)).answer).toBe(ending.answer)
  })
})

test('the documentation shows the table as it is', () => {
  const text = readFileSync(join(import.meta.dir, '../../../docs/design/uploads.md'), 'utf8')
  const shown = text.split('\n').filter((line) => /^\| `\w+` \| `/.test(line))
  const rows = cells.map(
    ({ state, event, ending }) =>
      `| \`${state}\` | \`${event}\` | ${ending.session} | ${ending.bytes} | ${ending.answer} |`,
  )
  expect(shown).toEqual(rows)
})
