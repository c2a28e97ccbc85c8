// The contract of policies, and of immutable tags through the use cases that push and delete.
import { expect, test } from 'bun:test'
import type { Digest } from '../../src/oci/digest.ts'
import { RegistryRefusal } from '../../src/oci/errors.ts'
import {
  parseImmutableTagPolicy,
  removeImmutableTags,
  setImmutableTags,
} from '../../src/registry/immutable-tag-rules.ts'
import { pushManifest } from '../../src/registry/manifest-push.ts'
import { deleteManifest } from '../../src/registry/manifests.ts'
import { restoreTag } from '../../src/registry/tag-history.ts'
import { deleteTag } from '../../src/registry/tags.ts'
import { imageOf } from '../support/api/api-images.ts'
import { openShelf, type Shelf, tagChange, tagged } from '../support/stores/metadata-rows.ts'
import { pushNeeds } from '../support/stores/push-needs.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const { actor } = tagChange
const policyOf = (...tags: string[]) => parseImmutableTagPolicy({ rules: [{ repositories: ['app'], tags }] })

const push = async ({ metadata, scope }: Shelf, tag: string, config: string): Promise<Digest> => {
  const { bytes, mediaType } = imageOf({ config })
  const pushing = { ...tagChange, reference: { tag: tagged(tag) }, tags: [], mediaType }
  const needs = { metadata, ...pushNeeds }
  return (await pushManifest(needs, scope, { ...pushing, bytes: new TextEncoder().encode(bytes) })).digest
}

/** `done`, or the refusal. */
const outcomeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof RegistryRefusal ? error.refusal : Promise.reject(error)),
  )

const digestOfTag = async ({ metadata, scope }: Shelf, tag: string) =>
  (await metadata.manifests.describe(scope, { tag: tagged(tag) }))?.digest

export function policiesContract(open: OpenMetadataStore): void {
  test('are of one account and one kind, with who set them last, and marks in the row of the account', async () => {
    const metadata = await open()
    const ids: number[] = []
    for (const name of ['a', 'b', 'c']) ids.push((await metadata.accounts.ensure(name)).id)
    const [a = 0, b = 0, c = 0] = ids
    await metadata.transaction(async ({ policies }) => {
      await policies.lock(a)
      for (const id of [a, c]) await policies.set(id, 'retention', '{}', 'ann')
      await policies.set(a, 'retention', '{"rules":[]}', 'ben')
      await policies.set(b, 'immutable-tags', '{}', 'cleo')
      await policies.setMarks(a, { hasImmutableTags: true, untaggedMs: 0 })
    })
    const policy = await metadata.policies.find(a, 'retention')

    expect(policy).toEqual({ body: '{"rules":[]}', changedAt: expect.any(Number), changedBy: 'ben' })
    expect(Math.abs((policy?.changedAt ?? 0) - (await metadata.now()))).toBeLessThan(60_000)
    expect(await metadata.policies.find(a, 'immutable-tags')).toBeUndefined()
    expect(await metadata.policies.listAccounts('retention', undefined, 10)).toEqual([a, c])
    expect(await metadata.policies.listAccounts('retention', a, 1)).toEqual([c])
    expect(await metadata.accounts.find('a')).toMatchObject({ hasImmutableTags: true, untaggedMs: 0 })
    expect(await metadata.accounts.find('b')).toMatchObject({ hasImmutableTags: false, untaggedMs: undefined })
    const remove = () => metadata.transaction(({ policies }) => policies.remove(a, 'retention'))
    expect([await remove(), await remove()]).toEqual([true, false])
    expect(await metadata.policies.listAccounts('retention', undefined, 10)).toEqual([c])
  })

  test('keep an immutable tag from every move and deletion, but not from a push of the same manifest', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'acme', 'other')
    const stranger = await openShelf(shelf.metadata, 'zeta', 'app')
    const needs = { ...shelf, ...pushNeeds }
    await push(shelf, 'v1', 'old')
    const digest = await push(shelf, 'v1', 'one')
    await setImmutableTags(shelf, shelf.accountId, policyOf('v*'), actor)

    const refused = [
      await outcomeOf(push(shelf, 'v1', 'two')),
      await outcomeOf(restoreTag(needs, shelf.scope, tagged('v1'), 'before the last move', actor)),
      await outcomeOf(deleteTag(shelf, shelf.scope, tagged('v1'), actor)),
      await outcomeOf(deleteManifest(needs, shelf.scope, digest, actor)),
    ]
    expect([...new Set(refused)]).toEqual(['tag-immutable'])
    expect([await push(shelf, 'v1', 'one'), await digestOfTag(shelf, 'v1')]).toEqual([digest, digest])
    // Nothing of a refused push is left.
    expect(
      await shelf.metadata.manifests.describe(shelf.scope, { digest: imageOf({ config: 'two' }).digest as Digest }),
    ).toBeUndefined()
    expect((await shelf.metadata.tagHistory.list(shelf.repository, tagged('v1'), undefined, 10)).length).toBe(2)
    for (const each of [other, stranger]) for (const config of ['1', '2']) await push(each, 'v1', config)
    for (const config of ['1', '2']) await push(shelf, 'latest', config)

    expect(await outcomeOf(deleteTag(shelf, shelf.scope, tagged('v1'), actor, true))).toBe('done')
    expect(await push(shelf, 'v1', 'two')).not.toBe(digest)
    await removeImmutableTags(shelf, shelf.accountId)
    expect(await push(shelf, 'v1', 'one')).toBe(digest)
  })

  test('let one of many simultaneous pushes create an immutable tag', async () => {
    const shelf = await openShelf(await open())
    await setImmutableTags(shelf, shelf.accountId, policyOf('*'), actor)
    for (let round = 0; round < 8; round += 1) {
      const tag = `r${round}`
      const outcomes = await Promise.all(
        [1, 2, 3, 4].map((config) => outcomeOf(push(shelf, tag, `${round} ${config}`))),
      )

      expect(outcomes.toSorted()).toEqual(['done', 'tag-immutable', 'tag-immutable', 'tag-immutable'])
      const winner = outcomes.indexOf('done') + 1
      expect(await digestOfTag(shelf, tag)).toBe(imageOf({ config: `${round} ${winner}` }).digest as Digest)
    }
  })

  test('hold as soon as they are acknowledged, also for pushes that have begun before', async () => {
    const shelf = await openShelf(await open())
    let isSet = false
    let pushed = 0
    const pushAlways = async (worker: number) => {
      const outcomes: string[] = []
      while (outcomes.at(-1) !== 'tag-immutable' && outcomes.length < 500) {
        const wasSet = isSet
        const outcome = await outcomeOf(push(shelf, 'v1', `${worker} ${outcomes.length}`))
        outcomes.push(outcome)
        pushed += 1
        if (wasSet) expect(outcome).toBe('tag-immutable')
      }
      return outcomes.at(-1)
    }
    const workers = [1, 2, 3].map(pushAlways)
    while (pushed < 10) await Bun.sleep(1)
    await setImmutableTags(shelf, shelf.accountId, policyOf('v*'), actor)
    isSet = true
    const digest = await digestOfTag(shelf, 'v1')

    expect(await Promise.all(workers)).toEqual(['tag-immutable', 'tag-immutable', 'tag-immutable'])
    expect(await digestOfTag(shelf, 'v1')).toBe(digest)
  })

  test('cannot be changed in a disabled account', async () => {
    const shelf = await openShelf(await open())
    await shelf.metadata.accounts.setState('acme', 'disabled')

    expect(await outcomeOf(setImmutableTags(shelf, shelf.accountId, policyOf('*'), actor))).toBe('account-disabled')
    expect(await shelf.metadata.policies.find(shelf.accountId, 'immutable-tags')).toBeUndefined()
  })
}
