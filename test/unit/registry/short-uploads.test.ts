// Requests whose bytes stay inline take no turn. Clients see no difference, and of two requests at once one changes nothing.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { freeChunk } from '../../../src/lib/byte-source.ts'
import { RegistryRefusal, Unavailable } from '../../../src/oci/errors.ts'
import { receiveIfShort } from '../../../src/registry/short-uploads.ts'
import type { IncomingChunk } from '../../../src/registry/upload-turn.ts'
import { UploadWriters } from '../../../src/registry/upload-writers.ts'
import { appendToUpload, describeUpload, finishUpload, startUpload } from '../../../src/registry/uploads.ts'
import { digestOf, generatedBytes } from '../../support/basics/generated-bytes.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { before, beforeCall, Gate } from '../../support/clocks/gates.ts'
import { countRows } from '../../support/stores/store-audit.ts'
import { damageMetadata } from '../../support/stores/store-damage.ts'
import { bodyOf, openWorld, pull, scopeOf, type World } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('short-uploads')
const inlineBytesMax = 100
const whole = generatedBytes(300)

async function openUpload(settings: Parameters<typeof openWorld>[1] = { inlineBytesMax }) {
  const world = await openWorld(temporaryFolder(), settings)
  const owner = { ...(await scopeOf(world)), subject: 'alice' }
  const { id } = await startUpload(world, owner, 'free')
  return { world, owner, id, count: (condition: string) => countRows(world.dataDir, 'uploads', condition) }
}

/** A body that fails behind these pieces. */
function brokenBody(...pieces: Uint8Array[]): IncomingChunk {
  async function* read() {
    yield* pieces
    throw new RegistryRefusal('body-incomplete')
  }
  return { body: Object.assign(read(), { cancel: () => undefined }), first: undefined, lengthBytes: undefined }
}

/** A body that waits between its halves. */
function slowBody(gate: Gate, bytes: Uint8Array): IncomingChunk {
  async function* read() {
    yield bytes.subarray(0, bytes.length / 2)
    await gate.pass()
    yield bytes.subarray(bytes.length / 2)
  }
  return { body: Object.assign(read(), { cancel: () => undefined }), first: undefined, lengthBytes: undefined }
}

const step = fc.record({
  sizes: fc.array(fc.constantFrom<number>(0, 1, 40, 70), { maxLength: 3 }),
  /** What is wrong with the request. */
  fault: fc.constantFrom('none', 'none', 'none', 'length', 'order', 'body', 'digest', 'disk'),
  isClosing: fc.boolean(),
  isElsewhere: fc.boolean(),
})

describe('short requests', () => {
  test('get the answers, and leave the bytes, of requests that take a turn', async () => {
    const settings = { inlineBytesMax, blobBytesMax: 170 }
    const worlds = [await openUpload(settings), await openUpload(settings)] as const
    let runs = 0
    const run = async (
      steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
      takesTurn: boolean,
    ) => {
      const { world } = worlds[takesTurn ? 1 : 0]
      const owner = { ...(await scopeOf(world, `r${runs}`)), subject: 'alice' }
      const { id } = await startUpload(world, owner, 'free')
      if (takesTurn) damageMetadata(world.dataDir, 'UPDATE uploads SET turn_until = 0')
      let at = 0
      const seen: unknown[] = []
      for (const { sizes, fault, isClosing, isElsewhere } of steps) {
        const pieces = sizes.map((size, index) => {
          const from = at + sizes.slice(0, index).reduce((sum, each) => sum + each, 0)
          return whole.subarray(from, from + size)
        })
        const sent = bodyOf(...pieces)
        const chunk: IncomingChunk = {
          ...(fault === 'body' ? brokenBody(...pieces) : sent),
          first: fault === 'order' ? at + 1 : undefined,
          lengthBytes: fault === 'length' ? (sent.lengthBytes ?? 0) + 1 : undefined,
        }
        const needs: World = {
          ...world,
          writers: isElsewhere ? new UploadWriters(world.clock) : world.writers,
          disk: { ...world.disk, isLow: () => fault === 'disk' },
        }
        const digest = digestOf(fault === 'digest' ? 'other' : whole.subarray(0, at + (sent.lengthBytes ?? 0)))
        const answer = await (isClosing
          ? finishUpload(needs, owner, id, digest, chunk)
          : appendToUpload(needs, owner, id, chunk)
        ).catch(({ refusal, details }: RegistryRefusal) => JSON.stringify([refusal, details]).replace(id, 'id'))
        at = await describeUpload(world, owner, id).catch(() => at)
        const isOpen = countRows(world.dataDir, 'uploads', `id = '${id}' AND done_digest IS NULL`)
        seen.push(answer, at, isOpen, isClosing && (await pull(world, owner, digest)))
      }
      return seen
    }
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        runs += 1
        expect(await run(steps, false)).toEqual(await run(steps, true))
      }),
      { numRuns: 100 },
    )
  })

  test('claim nothing, in one statement for a PATCH and one transaction for a PUT', async () => {
    const { world, owner, id, count } = await openUpload()
    let claims = 0
    const metadata = before(world.metadata, 'uploads', 'claimTurn', async () => {
      claims += 1
    })
    const needs = { ...world, metadata }

    expect(await appendToUpload(needs, owner, id, bodyOf(whole.subarray(0, 60)))).toBe(60)
    expect(await appendToUpload(needs, owner, id, bodyOf(whole.subarray(60, 90)))).toBe(90)
    await finishUpload(needs, owner, id, digestOf(whole.subarray(0, 100)), bodyOf(whole.subarray(90, 100)))

    expect([claims, count('done_digest IS NOT NULL'), countRows(world.dataDir, 'trash')]).toEqual([0, 1, 0])
  })

  test('claim the turn when their body does not end soon', async () => {
    const { world, owner, id, count } = await openUpload()
    const gate = new Gate()
    const appending = appendToUpload(world, owner, id, slowBody(gate, whole.subarray(0, 60)))
    await gate.reached
    while (count('turn_until > 0') === 0) await Bun.sleep(5)

    const elsewhere = { ...world, writers: new UploadWriters(world.clock) }
    const second = await errorOf(appendToUpload(elsewhere, owner, id, bodyOf(whole.subarray(0, 10))))
    expect(second).toMatchObject({ refusal: 'upload-busy' })
    gate.open()
    expect(await appending).toBe(60)
  })
})

test('the bytes of a short body can be read again after a writer has freed them', async () => {
  const { world, owner, id } = await openUpload()
  const state = await world.metadata.uploads.find(owner, id)
  if (state === undefined || !('open' in state)) throw new Error('the session is not open')
  using started = await receiveIfShort(world, state.open, bodyOf(whole.slice(0, 40), whole.slice(40, 60)))
  for (let reads = 0; reads < 2; reads += 1) {
    const seen: number[] = []
    for await (const piece of started.chunk.body) {
      seen.push(...piece)
      freeChunk(piece)
    }
    expect(seen).toEqual([...whole.subarray(0, 60)])
  }
})

describe('of two requests that read the session at once', () => {
  const bytes = whole.subarray(0, 60)

  test.each([
    ['PATCH', 'short', 'upload-busy'],
    ['PATCH', 'with a turn', 'upload-busy'],
    ['PUT', 'short', 'upload-busy'],
    ['PUT', 'with a turn', 'upload-busy'],
  ] as const)('the second one, a %s, changes nothing; the first one is %s', async (method, kind, refusal) => {
    const { world, owner, id } = await openUpload()
    const gate = new Gate()
    const pass = () => gate.pass()
    const metadata = beforeCall(before(world.metadata, 'uploads', 'recordUnclaimed', pass), 'transaction', pass)
    const needs = { ...world, metadata }
    const digest = digestOf(bytes)
    const asked =
      method === 'PUT'
        ? finishUpload(needs, owner, id, digest, bodyOf(bytes))
        : appendToUpload(needs, owner, id, bodyOf(bytes))
    const held = errorOf(asked)
    await gate.reached
    const settings = { ...world.settings, inlineBytesMax: kind === 'short' ? inlineBytesMax : 0 }
    const elsewhere = { ...world, settings, writers: new UploadWriters(world.clock) }
    expect(await appendToUpload(elsewhere, owner, id, bodyOf(bytes))).toBe(60)
    gate.open()

    expect(await held).toMatchObject({ refusal })
    expect(await describeUpload(world, owner, id)).toBe(60)
    await finishUpload(world, owner, id, digest, bodyOf())
    expect(await pull(world, owner, digest)).toBe(new TextDecoder().decode(bytes))
  })

  test('and close it with one digest, both succeed', async () => {
    const { world, owner, id, count } = await openUpload()
    const close = (writers: UploadWriters) =>
      finishUpload({ ...world, writers }, owner, id, digestOf(bytes), bodyOf(bytes))
    await Promise.all([close(world.writers), close(new UploadWriters(world.clock)), close(world.writers)])
    expect([count('done_digest IS NOT NULL'), countRows(world.dataDir, 'blobs')]).toEqual([1, 1])
  })

  test('and close it with one digest, the second one succeeds also if a third one waits already', async () => {
    const { world, owner, id } = await openUpload()
    const digest = digestOf(bytes)
    const gate = new Gate()
    const metadata = beforeCall(world.metadata, 'transaction', gate.pass)
    const second = finishUpload({ ...world, metadata }, owner, id, digest, bodyOf(bytes))
    await gate.reached
    using _third = world.writers.waitFor(id, digest, undefined)
    await finishUpload({ ...world, writers: new UploadWriters(world.clock) }, owner, id, digest, bodyOf(bytes))
    gate.open()
    expect(await second).toBeUndefined()
  })
})

test('a request whose bytes were received before another one has claimed the turn does not commit without the turn', async () => {
  const { world, owner, id, count } = await openUpload()
  const bytes = whole.subarray(0, 60)
  const [gate, turn] = [new Gate(), new Gate()]
  const metadata = beforeCall(world.metadata, 'transaction', gate.pass)
  const first = errorOf(finishUpload({ ...world, metadata }, owner, id, digestOf(bytes), bodyOf(bytes)))
  await gate.reached
  const slow = { ...world, settings: { ...world.settings, inlineBytesMax: 0 }, writers: new UploadWriters(world.clock) }
  const second = finishUpload(slow, owner, id, digestOf(bytes), slowBody(turn, bytes))
  await turn.reached
  gate.open()
  // The first request now waits for the second one. A server of an older version does not record what a writer closes.
  await Bun.sleep(100)
  damageMetadata(world.dataDir, 'UPDATE uploads SET closing_digest = NULL')

  expect(await first).toMatchObject({ refusal: 'upload-busy' })
  turn.open()
  await second
  expect(count('done_digest IS NOT NULL')).toBe(1)
})

test('a store that fails leaves the session as it was', async () => {
  const { world, owner, id } = await openUpload()
  const fail = async () => {
    throw new Unavailable('metadata-store', { cause: new Error('a test') })
  }
  for (const method of ['recordUnclaimed', 'commit'] as const) {
    const needs = { ...world, metadata: before(world.metadata, 'uploads', method, fail) }
    const sent = bodyOf(whole.subarray(0, 10))
    const digest = digestOf(whole.subarray(0, 10))
    const asked =
      method === 'commit' ? finishUpload(needs, owner, id, digest, sent) : appendToUpload(needs, owner, id, sent)
    expect(await errorOf(asked)).toBeInstanceOf(Unavailable)
    expect(await describeUpload(world, owner, id)).toBe(0)
  }
})

test('a PATCH is recorded once, and succeeds, if the store is told of it but its answer is lost', async () => {
  const { world, owner, id } = await openUpload()
  const { metadata } = world
  let answers = 0
  const recordUnclaimed: typeof metadata.uploads.recordUnclaimed = async (...call) => {
    const isRecorded = await metadata.uploads.recordUnclaimed(...call)
    answers += 1
    if (answers === 1) throw new Unavailable('metadata-store', { cause: new Error('a test') })
    return isRecorded
  }
  const uploads = {
    recordUnclaimed,
    find: (...call: Parameters<typeof metadata.uploads.find>) => metadata.uploads.find(...call),
  }
  const needs = { ...world, metadata: { ...metadata, uploads } } as unknown as World
  const bytes = whole.subarray(0, 60)

  expect(await appendToUpload(needs, owner, id, bodyOf(bytes))).toBe(60)
  expect([answers, await describeUpload(world, owner, id)]).toEqual([2, 60])
  await finishUpload(world, owner, id, digestOf(bytes), bodyOf())
})
