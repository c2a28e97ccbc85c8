// What a registry should count, in a few lines, and the steps that can be taken on it and on a real one alike.

import { collect, openWorld } from '../stores/use-case-world.ts'
import { imageOf, indexOf, type Manifest, ociManifest, pushBlob, putManifest } from './api-images.ts'
import { type ApiServer, api, type Reply } from './api-server.ts'

export const operations = [
  'push a tag',
  'push a digest',
  'push an index',
  'push two at once',
  'push what is broken',
  'push what is incomplete',
  'upload only',
  'delete a tag',
  'delete a manifest',
  'delete an index',
  'collect',
  'look',
  'disable',
  'enable',
] as const

export interface Step {
  readonly operation: (typeof operations)[number]
  readonly who: number
  readonly repository: number
  readonly image: number
}

interface ModelRepository {
  readonly manifests: Set<string>
  readonly tags: Map<string, string>
}

/** One account. `take` gives the statuses that the step must have, and does it. */
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

  take({ operation, repository, image }: Step): readonly number[] {
    if (operation === 'collect') return []
    if (operation === 'disable' || operation === 'enable') {
      this.#state = `${operation}d`
      return [200]
    }
    if (this.#state === 'never' && this.#isEnabledByUse) this.#state = 'enabled'
    if (this.#state !== 'enabled') return operation === 'push two at once' ? [403, 403] : [403]
    return this.#change(operation, this.#repositories.get(repository), repository, image)
  }

  #change(
    operation: Step['operation'],
    known: ModelRepository | undefined,
    at: number,
    image: number,
  ): readonly number[] {
    const its = known ?? { manifests: new Set(), tags: new Map() }
    const [name, index] = [`image-${image}`, `index-${image}`]
    const isListed = its.manifests.has(index)
    switch (operation) {
      case 'push a tag':
        its.tags.set(`tag-${image % 2}`, name)
        break
      case 'push an index':
        if (!its.manifests.has(name)) return [400]
        its.manifests.add(index)
        return [201]
      case 'push two at once':
        its.manifests.add('image-extra')
        break
      case 'push what is broken':
      case 'push what is incomplete':
        return [400]
      case 'upload only':
        return [201]
      case 'look':
        return [200]
      case 'delete a tag':
        return [its.tags.delete(`tag-${image % 2}`) ? 202 : 404]
      case 'delete a manifest':
        return [isListed ? 405 : this.#forget(its, name)]
      case 'delete an index':
        return [this.#forget(its, index)]
    }
    its.manifests.add(name)
    this.#repositories.set(at, its)
    return operation === 'push two at once' ? [201, 201] : [201]
  }

  #forget(its: ModelRepository, name: string): number {
    for (const [tag, to] of its.tags) if (to === name) its.tags.delete(tag)
    return its.manifests.delete(name) ? 202 : 404
  }
}

const image = (number: number | 'extra') => imageOf({ annotations: { number: String(number) } })
const index = (number: number) => indexOf([image(number).descriptor])

/** The same step on the real one; gives the statuses. */
export async function takeStep(
  server: ApiServer,
  { operation, repository, image: number }: Step,
): Promise<readonly number[]> {
  const name = `app-${repository}`
  const remove = async (reference: string) => [
    (await server.ask('DELETE', `/v2/${name}/manifests/${reference}`)).status,
  ]
  const put = async (reference: string, manifest: Manifest) => putManifest(server, name, reference, manifest)
  const push = async (...pushes: readonly (readonly [string, Manifest])[]) => {
    // Refused while the account is disabled, and then the manifests are too.
    await pushBlob(server, name, '{}').catch(() => undefined)
    return statusesOf(await Promise.all(pushes.map((one) => put(...one))))
  }
  switch (operation) {
    case 'push a tag':
      return push([`tag-${number % 2}`, image(number)])
    case 'push a digest':
      return push([image(number).digest, image(number)])
    case 'push an index':
      return statusesOf([await put(index(number).digest, index(number))])
    case 'push two at once':
      return push([image('extra').digest, image('extra')], [image(number).digest, image(number)])
    case 'push what is broken':
      return statusesOf([
        await put('broken', { ...image(number), mediaType: ociManifest, bytes: '{"schemaVersion":2' }),
      ])
    case 'push what is incomplete':
      return statusesOf([await put('incomplete', imageOf({ layers: ['nobody has this'] }))])
    case 'upload only':
      return [
        await pushBlob(server, name, 'a layer without an image').then(
          () => 201,
          () => 403,
        ),
      ]
    case 'delete a tag':
      return remove(`tag-${number % 2}`)
    case 'delete a manifest':
      return remove(image(number).digest)
    case 'delete an index':
      return remove(index(number).digest)
    case 'look':
      return statusesOf([await server.ask('GET', '/v2/_catalog')])
    case 'disable':
    case 'enable':
      return statusesOf([await server.ask('POST', `${api}/${operation}`)])
    case 'collect':
      return collectEverything(server)
  }
}

function statusesOf(replies: readonly Reply[]): readonly number[] {
  return replies.map(({ status }) => status)
}

async function collectEverything({ dataDir }: ApiServer): Promise<readonly number[]> {
  const world = await openWorld(dataDir)
  await collect(world, { leaseMs: 0 })
  await world.metadata.close()
  return []
}
