// What a registry should count, in a few lines: each operation as it changes the model, and as it is asked of a registry.

import { imageOf, indexOf, type Manifest, pushBlob, putManifest } from '../../support/api/api-images.ts'
import { type ApiServer, api } from '../../support/api/api-server.ts'
import { collect, openWorld } from '../../support/stores/use-case-world.ts'

interface ModelRepository {
  readonly manifests: Set<string>
  readonly tags: Map<string, string>
}

type Statuses = readonly number[]

interface Operation {
  /** The statuses that it must have while the account is enabled. */
  readonly expect: (its: ModelRepository, image: number) => Statuses
  readonly run: (server: ApiServer, repository: string, image: number) => Promise<Statuses>
}

const image = (number: number | 'extra') => imageOf({ annotations: { number: String(number) } })
const index = (number: number) => indexOf([image(number).descriptor])
const tagOf = (number: number) => `tag-${number % 2}`

function forget({ manifests, tags }: ModelRepository, name: string): Statuses {
  for (const [tag, to] of tags) if (to === name) tags.delete(tag)
  return [manifests.delete(name) ? 202 : 404]
}

function add({ manifests }: ModelRepository, ...names: readonly string[]): Statuses {
  for (const name of names) manifests.add(name)
  return names.map(() => 201)
}

async function put(server: ApiServer, repository: string, reference: string, manifest: Manifest): Promise<number> {
  return (await putManifest(server, repository, reference, manifest)).status
}

async function push(server: ApiServer, repository: string, ...pushes: readonly (readonly [string, Manifest])[]) {
  // Refused while the account is disabled, and then the manifests are too.
  await pushBlob(server, repository, '{}').catch(() => undefined)
  return Promise.all(pushes.map(([reference, manifest]) => put(server, repository, reference, manifest)))
}

async function remove(server: ApiServer, repository: string, reference: string): Promise<Statuses> {
  return [(await server.ask('DELETE', `/v2/${repository}/manifests/${reference}`)).status]
}

const table = {
  'push a tag': {
    expect(its, at) {
      its.tags.set(tagOf(at), `image-${at}`)
      return add(its, `image-${at}`)
    },
    run: (server, name, at) => push(server, name, [tagOf(at), image(at)]),
  },
  'push a digest': {
    expect: (its, at) => add(its, `image-${at}`),
    run: (server, name, at) => push(server, name, [image(at).digest, image(at)]),
  },
  'push an index': {
    expect: (its, at) => (its.manifests.has(`image-${at}`) ? add(its, `index-${at}`) : [400]),
    run: async (server, name, at) => [await put(server, name, index(at).digest, index(at))],
  },
  'push two at once': {
    expect: (its, at) => add(its, 'image-extra', `image-${at}`),
    run: (server, name, at) =>
      push(server, name, [image('extra').digest, image('extra')], [image(at).digest, image(at)]),
  },
  'push what is broken': {
    expect: () => [400],
    run: async (server, name, at) => [await put(server, name, 'broken', { ...image(at), bytes: '{"schemaVersion":2' })],
  },
  'push what is incomplete': {
    expect: () => [400],
    run: async (server, name) => [await put(server, name, 'incomplete', imageOf({ layers: ['nobody has this'] }))],
  },
  'upload only': {
    expect: () => [201],
    run: (server, name) =>
      pushBlob(server, name, 'a layer without an image').then(
        () => [201],
        () => [403],
      ),
  },
  'delete a tag': {
    expect: (its, at) => [its.tags.delete(tagOf(at)) ? 202 : 404],
    run: (server, name, at) => remove(server, name, tagOf(at)),
  },
  'delete a manifest': {
    expect: (its, at) => (its.manifests.has(`index-${at}`) ? [405] : forget(its, `image-${at}`)),
    run: (server, name, at) => remove(server, name, image(at).digest),
  },
  'delete an index': {
    expect: (its, at) => forget(its, `index-${at}`),
    run: (server, name, at) => remove(server, name, index(at).digest),
  },
  look: {
    expect: () => [200],
    run: async (server) => [(await server.ask('GET', '/v2/_catalog')).status],
  },
} satisfies Readonly<Record<string, Operation>>

/** Operations of the account, whatever its state is. */
const accountOperations = ['collect', 'disable', 'enable'] as const
type AccountOperation = (typeof accountOperations)[number]

export interface Step {
  readonly operation: keyof typeof table | AccountOperation
  readonly who: number
  readonly repository: number
  readonly image: number
}

export const operations = [...Object.keys(table), ...accountOperations] as readonly Step['operation'][]

const isOfAccount = (operation: Step['operation']): operation is AccountOperation => !Object.hasOwn(table, operation)

/** One account. `take` gives the statuses that the step must have, and changes the model. */
export class AccountModel {
  #state: 'never' | 'enabled' | 'disabled' = 'never'
  readonly #isEnabledByUse: boolean
  readonly #repositories = new Map<number, ModelRepository>()

  constructor(isEnabledByUse: boolean) {
    this.#isEnabledByUse = isEnabledByUse
  }

  get imageCount(): number {
    return [...this.#repositories.values()].filter(({ manifests }) => manifests.size > 0).length
  }

  take({ operation, repository, image: at }: Step): Statuses {
    if (operation === 'collect') return []
    if (isOfAccount(operation)) {
      this.#state = `${operation}d`
      return [200]
    }
    if (this.#state === 'never' && this.#isEnabledByUse) this.#state = 'enabled'
    if (this.#state !== 'enabled') return operation === 'push two at once' ? [403, 403] : [403]
    const its = this.#repositories.get(repository) ?? { manifests: new Set(), tags: new Map() }
    this.#repositories.set(repository, its)
    return table[operation].expect(its, at)
  }
}

/** The same step on a registry; gives the statuses. */
export async function takeStep(server: ApiServer, { operation, repository, image: at }: Step): Promise<Statuses> {
  if (!isOfAccount(operation)) return table[operation].run(server, `app-${repository}`, at)
  if (operation !== 'collect') return [(await server.ask('POST', `${api}/${operation}`)).status]
  const world = await openWorld(server.dataDir)
  await collect(world, { leaseMs: 0 })
  await world.metadata.close()
  return []
}
