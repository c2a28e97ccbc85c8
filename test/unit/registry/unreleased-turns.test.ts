// A request whose turn could not be released, because the metadata store failed: the next request in the same process
// releases it, and does not wait until it expires.
import { expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { Unavailable } from '../../../src/oci/errors.ts'
import { UploadWriters } from '../../../src/registry/upload-writers.ts'
import { appendToUpload, finishUpload, startUpload } from '../../../src/registry/uploads.ts'
import { digestOf } from '../../support/basics/generated-bytes.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { before } from '../../support/clocks/gates.ts'
import { bodyOf, openWorld, scopeOf } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('unreleased-turns')
const whole = new Uint8Array(100).fill(7)
const digest = digestOf(whole)

/** The steps of the metadata store at which it can fail for the first time. */
const firstFailures = ['claimTurn', 'commit'] as const

/** A closing request during which the metadata store fails, and stays out of reach until the request has ended. */
async function failToClose(step: (typeof firstFailures)[number]) {
  const world = await openWorld(temporaryFolder())
  const owner = { ...(await scopeOf(world)), subject: 'alice' }
  const { id } = await startUpload(world, owner, 'free')
  let isDown = false
  const fail = async () => {
    if (isDown) throw new Unavailable('metadata-store', { cause: new Error('gone') })
  }
  const failing = ['holdsTurn', 'releaseTurn', 'renewTurn', 'remove', 'find'].reduce(
    (inner, method) => before(inner, 'uploads', method, fail),
    world.metadata,
  )
  const metadata = before(failing, 'uploads', step, async () => {
    // The answer to a claim is lost, but the claim takes effect.
    if (step === 'claimTurn') await world.metadata.uploads.claimTurn(owner, id, 30_000, digest)
    isDown = true
    await fail()
  })
  const needs = { ...world, writers: new UploadWriters(systemClock) }
  const close = () => errorOf(finishUpload({ ...needs, metadata }, owner, id, digest, bodyOf(whole)))
  expect(await close()).toBeInstanceOf(Unavailable)
  // A repeated request during the outage does not forget the turn.
  expect(await close()).toBeInstanceOf(Unavailable)
  return { needs, owner, id }
}

test.each(firstFailures)('a repeated closing request has the turn at once after a failure of %s', async (step) => {
  const { needs, owner, id } = await failToClose(step)
  await finishUpload(needs, owner, id, digest, bodyOf(whole))
  expect((await needs.metadata.blobs.find(owner, digest))?.sizeBytes).toBe(whole.length)
})

test.each(firstFailures)('a chunk is appended at once after a failure of %s', async (step) => {
  const { needs, owner, id } = await failToClose(step)
  expect(await appendToUpload(needs, owner, id, bodyOf(whole))).toBe(whole.length)
})

test.each(firstFailures)(
  'control: another process waits until the turn expires after a failure of %s',
  async (step) => {
    const { needs, owner, id } = await failToClose(step)
    const other = { ...needs, writers: new UploadWriters(systemClock) }
    expect(await errorOf(appendToUpload(other, owner, id, bodyOf(whole)))).toMatchObject({ refusal: 'upload-busy' })
  },
)
