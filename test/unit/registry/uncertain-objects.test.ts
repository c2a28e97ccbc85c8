import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { RegistryRefusal, Spoiled, Unavailable } from '../../../src/oci/errors.ts'
import type { BlobStore, BlobWriter } from '../../../src/ports/blob-store.ts'
import { RunningUploads } from '../../../src/registry/running-uploads.ts'
import { appendToUpload, finishUpload, startUpload, uploadAtOnce } from '../../../src/registry/uploads.ts'
import { bodyOf, openWorld, scopeOf } from '../../support/deed-world.ts'
import { digestOf, generatedBytes } from '../../support/generated-bytes.ts'
import { named } from '../../support/metadata-rows.ts'
import { errorOf } from '../../support/outcomes.ts'
import { useTemporaryFolders } from '../../support/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('uncertain')
const bytes = generatedBytes(1_000)
const digest = digestOf(bytes)

interface Ending {
  readonly complete: (writer: BlobWriter) => ReturnType<BlobWriter['complete']>
  readonly read?: () => AsyncIterable<Uint8Array>
}

/** A world whose writers end as they are told to, and the number of objects that were read in it. */
async function openEnding({ complete, read }: Ending) {
  const world = await openWorld(temporaryFolder())
  let reads = 0
  const blobs: Pick<BlobStore, 'openWriter' | 'read'> = {
    async openWriter(key, from) {
      const writer = await world.blobs.openWriter(key, from)
      return new Proxy(writer, {
        get(target, name) {
          if (name === 'complete') return () => complete(target)
          const own: unknown = Reflect.get(target, name)
          return typeof own === 'function' ? own.bind(target) : own
        },
      })
    },
    async read(...asked) {
      reads += 1
      return read?.() ?? world.blobs.read(...asked)
    },
  }
  const push = async () => {
    const { id: accountId } = await world.metadata.accounts.ensure('acme')
    const owner = { accountId, repository: named('app'), subject: 'alice' }
    const body = Object.assign(new Blob([bytes]).stream(), { cancel: () => Promise.resolve() })
    const chunk = { body, first: undefined, lengthBytes: undefined }
    await uploadAtOnce({ ...world, blobs }, owner, digest, chunk)
    return world.metadata.blobs.find(owner, digest)
  }
  return { push, reads: () => reads }
}

const uncertain: Ending['complete'] = async (writer) => ({ ...(await writer.complete()), isCertain: false })

describe('an object of which it is not certain what it was made of', () => {
  test('is read before it is believed', async () => {
    const { push, reads } = await openEnding({ complete: uncertain })

    expect((await push())?.sizeBytes).toBe(bytes.length)
    expect(reads()).toBe(1)
  })

  test('is refused when other bytes stand there', async () => {
    const { push } = await openEnding({
      complete: uncertain,
      read: () => new Blob([generatedBytes(1_000, 2)]).stream(),
    })

    const error = await errorOf(push())
    expect(error instanceof RegistryRefusal && error.refusal).toBe('digest-mismatch')
  })

  test('costs no reading where it is certain (the control)', async () => {
    const { push, reads } = await openEnding({ complete: (writer) => writer.complete() })

    expect((await push())?.sizeBytes).toBe(bytes.length)
    expect(reads()).toBe(0)
  })
})

test('a digest that was kept for fewer bytes than are closed proves nothing', async () => {
  const world = await openWorld(temporaryFolder())
  const owner = { ...(await scopeOf(world)), subject: 'alice' }
  const { id } = await startUpload(world, owner, 'free')
  await appendToUpload(world, owner, id, bodyOf(bytes))
  const restarted = { ...world, running: new RunningUploads(systemClock) }

  const error = await errorOf(finishUpload(restarted, owner, id, digest, bodyOf(generatedBytes(4, 2))))

  expect(error).toMatchObject({ refusal: 'digest-mismatch' })
  expect(await world.metadata.blobs.find(owner, digest)).toBeUndefined()
})

test('what can never become whole has to be sent again: one request is told to come again', async () => {
  const { push } = await openEnding({ complete: () => Promise.reject(new Spoiled('a part was replaced')) })

  expect(await errorOf(push())).toBeInstanceOf(Unavailable)
})
