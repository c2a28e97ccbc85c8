// The process of `gated-replica.ts`: the assembly as it is, but for stores that can be held before and after each call.
import type { BlobStore } from '../../../src/ports/blob-store.ts'
import type { MetadataStore, Tables } from '../../../src/ports/metadata-store.ts'
import { collectGarbage } from '../../../src/registry/garbage.ts'
import { assembleServer } from '../server/moved-server.ts'
import type { FromReplica, Step, ToReplica } from './gated-replica.ts'

const armed = new Map<Step, number[]>()
const held = new Map<number, () => void>()

function tell(message: FromReplica): void {
  process.send?.(message)
}

async function pass(step: Step): Promise<void> {
  const id = armed.get(step)?.shift()
  if (id === undefined) return
  await new Promise<void>((resolve) => {
    held.set(id, resolve)
    tell({ is: 'held', id })
  })
}

/** Every method of the object stops before and after its work. Those that give something at once are not asked to wait. */
function gated<T extends object>(name: string, target: T): T {
  return new Proxy(target, {
    get(_, key) {
      const own: unknown = Reflect.get(target, key)
      if (typeof own !== 'function' || typeof key === 'symbol') return own
      if (key === 'listOlderThan' || key === 'presignDownload') return own.bind(target)
      return async (...values: unknown[]) => {
        await pass(`before ${name}.${key}`)
        const result: unknown = await own.apply(target, values)
        await pass(`after ${name}.${key}`)
        return result
      }
    },
  })
}

function gatedNouns<T extends Tables>(tables: T): T {
  return new Proxy(tables, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key)
      if (typeof own === 'function') return own.bind(target)
      return typeof own === 'object' && own !== null && typeof key === 'string' ? gated(key, own) : own
    },
  })
}

function gatedMetadata(metadata: MetadataStore): MetadataStore {
  const transaction: MetadataStore['transaction'] = async (work) => {
    await pass('before transaction')
    const result = await metadata.transaction((tables) => work(gatedNouns(tables)))
    await pass('after transaction')
    return result
  }
  return new Proxy(gatedNouns(metadata), {
    get: (target, key) => (key === 'transaction' ? transaction : Reflect.get(target, key)),
  })
}

function gatedBlobs(blobs: BlobStore): BlobStore {
  const openWriter: BlobStore['openWriter'] = async (key, from) => gated('writer', await blobs.openWriter(key, from))
  return new Proxy(gated('store', blobs), {
    get: (target, key) => (key === 'openWriter' ? openWriter : Reflect.get(target, key)),
  })
}

const { app, url } = await assembleServer(process.env['BERTH_DATA_DIR'] ?? 'data', {
  settings: { ...process.env, BERTH_LOG__LEVEL: 'error' },
  change: ({ metadata, blobs }) => ({ metadata: gatedMetadata(metadata), blobs: gatedBlobs(blobs) }),
})

process.on('message', (message: ToReplica) => {
  const { id } = message
  if (message.do === 'hold') {
    armed.set(message.step, [...(armed.get(message.step) ?? []), id])
    tell({ is: 'armed', id })
  } else if (message.do === 'let go') {
    held.get(id)?.()
  } else {
    collectGarbage(app, message.ages).then(
      (collected) => tell({ is: 'collected', id, collected }),
      (error) => tell({ is: 'collected', id, error: String(error) }),
    )
  }
})
// The test is gone: so are we.
process.on('disconnect', () => process.exit())
tell({ is: 'ready', id: 0, url })
