// The contract of what retention policies need of a store, through the use cases that apply them.
import { expect, test } from 'bun:test'
import type { RepositoryName } from '../../src/oci/names.ts'
import type { Actor } from '../../src/ports/actor.ts'
import { parseImmutableTagPolicy, setImmutableTags } from '../../src/registry/immutable-tag-rules.ts'
import { type DecisionPosition, listDecisions, removeRetention, setRetention } from '../../src/registry/retention.ts'
import { parseRetentionPolicy } from '../../src/registry/retention-rules.ts'
import { runDueRetention, runRetention } from '../../src/registry/retention-run.ts'
import {
  addManifest,
  manifestOf,
  named,
  openShelf,
  passTime,
  type Shelf,
  tagChange,
  tagged,
} from '../support/stores/metadata-rows.ts'
import { pushNeeds } from '../support/stores/push-needs.ts'
import { drawFrom, drawPolicy, drawTags, findKept } from '../support/stores/retention-model.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const actor: Actor = { subject: 'ann' }

const set = (shelf: Shelf, json: object) =>
  setRetention(shelf, shelf.accountId, { json, policy: parseRetentionPolicy(json) }, actor)
const needsOf = ({ metadata }: Shelf) => ({ metadata, ...pushNeeds })
const run = (shelf: Shelf, limits = {}) => runRetention(needsOf(shelf), shelf.accountId, actor, limits)
const statesOf = ({ metadata, repository }: Shelf) => metadata.tags.listStates(repository, undefined, 1_000)
const tagsOf = async (shelf: Shelf) => (await statesOf(shelf)).map(({ tag }) => tag as string)
/** An image with its place in the counter, as a push adds it. */
const push = async (shelf: Shelf, tag: string, text = tag) => {
  const { isNew } = await addManifest(shelf, text, { tag })
  if (isNew) await shelf.metadata.transaction(({ repositories }) => repositories.markAsImage(shelf.repository))
}

export function retentionContract(open: OpenMetadataStore): void {
  test('removes what a model removes, in random registries, and tells it before', async () => {
    const metadata = await open()
    let removed = 0
    for (let round = 0; round < 12; round += 1) {
      const shelf = await openShelf(metadata, `account ${round}`)
      const draw = drawFrom(1_000 + round)
      for (const { tag } of drawTags(draw, 0)) {
        await push(shelf, tag, `${tag} ${draw(4)}`)
        await passTime()
      }
      const pulled = (await statesOf(shelf)).filter(() => draw(2) === 0)
      const pulls = pulled.map(({ tag, manifestId }) => ({
        repository: shelf.repository,
        manifestId,
        tag,
        pulledAt: draw(9),
      }))
      await metadata.pulls.record(pulls, 1)
      await setImmutableTags(shelf, shelf.accountId, parseImmutableTagPolicy({ rules: [{ tags: ['v1*'] }] }), actor)
      const { json, policy } = drawPolicy(draw)
      const account = await metadata.accounts.find(`account ${round}`)
      if (account === undefined) return expect.unreachable()
      const states = await statesOf(shelf)
      const expected = findKept(states, policy, await metadata.now(), (tag) => tag.startsWith('v1'))

      const planned: string[] = []
      for (let after: DecisionPosition | undefined, isDone = false; !isDone; ) {
        const page = await listDecisions(shelf, account, policy, { after, limit: 3 })
        planned.push(...page.decisions.filter(({ isKept }) => isKept).map(({ state }) => state.tag))
        expect(page.decisions.length).toBeLessThanOrEqual(3)
        after = page.next
        isDone = after === undefined
      }
      expect([round, planned]).toEqual([round, expected])
      await set(shelf, json)
      expect((await run(shelf)).removedTags).toBe(states.length - expected.length)
      expect([round, await tagsOf(shelf)]).toEqual([round, expected])
      expect((await run(shelf)).removedTags).toBe(0)
      removed += states.length - expected.length
    }
    expect(removed).toBeGreaterThan(30)
  })

  test('does not remove a tag that was pushed, moved or created again after it was planned', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, scope } = shelf
    for (const tag of ['again', 'moved', 'gone', 'same', 'created']) await push(shelf, tag)
    await passTime()
    const states = await statesOf(shelf)
    await push(shelf, 'again')
    await push(shelf, 'moved', 'other')
    for (const tag of ['gone', 'created']) {
      await metadata.transaction(({ tags }) => tags.remove(scope, tagged(tag), tagChange))
    }
    await push(shelf, 'created')
    const removed: string[] = []
    for (const state of states) {
      const isRemoved = await metadata.transaction(({ tags }) =>
        tags.removeUnchanged(repository, state, { actor, cause: 'policy' }),
      )
      if (isRemoved) removed.push(state.tag)
    }

    expect(removed).toEqual(['same'])
    const [move] = await metadata.tagHistory.list(repository, tagged('same'), undefined, 1)
    expect(move).toMatchObject({ from: manifestOf('same').digest, to: undefined, movedBy: 'ann', cause: 'policy' })
    const untagged = await metadata.untagged.list(repository, undefined, 10)
    expect(untagged.manifests.map(({ digest }) => digest)).toContain(manifestOf('same').digest)
  })

  test('knows of a tag such as `sha256-<hex>.sig` whether its image exists', async () => {
    const shelf = await openShelf(await open())
    const { digest } = await addManifest(shelf, 'image', { tag: 'v1' })
    const names = [
      digest.replace(':', '-'),
      `${digest.replace(':', '-')}.sig`,
      `sha256-${'0'.repeat(64)}.sig`,
      'sha256-x',
    ]
    for (const name of names) await push(shelf, name, 'signature')

    const states = await statesOf(shelf)
    const known = states.map(({ tag, hasSubject }) => [tag, hasSubject] as const)
    expect(new Map<string, boolean | undefined>(known)).toEqual(
      new Map<string, boolean | undefined>([
        [names[0] ?? '', true],
        [names[1] ?? '', true],
        [names[2] ?? '', false],
        ['sha256-x', undefined],
        ['v1', undefined],
      ]),
    )
  })

  test('ends when the policy or the account changes, and removes nothing more', async () => {
    const metadata = await open()
    const shelves = [
      await openShelf(metadata, 'acme', 'a'),
      await openShelf(metadata, 'acme', 'b'),
      await openShelf(metadata, 'acme', 'c'),
    ]
    const [shelf] = shelves
    if (shelf === undefined) return expect.unreachable()
    for (const one of shelves) for (const tag of ['x1', 'x2']) await push(one, tag)
    const rules = { rules: [{ keep: [{ tags: ['x1'] }] }] }
    await set(shelf, rules)
    const afterFirst = (change: () => Promise<unknown>) => ({
      onProgress: async (done: RepositoryName) => void (done === 'a' && (await change())),
    })

    expect(
      await run(
        shelf,
        afterFirst(() => removeRetention(shelf, shelf.accountId)),
      ),
    ).toMatchObject({ removedTags: 1 })
    await set(shelf, rules)
    expect(
      await run(
        shelf,
        afterFirst(() => set(shelf, { rules: [] })),
      ),
    ).toMatchObject({ removedTags: 0 })
    await set(shelf, rules)
    await run(
      shelf,
      afterFirst(() => metadata.accounts.setState('acme', 'disabled')),
    )
    expect(await Promise.all(shelves.map(tagsOf))).toEqual([['x1'], ['x1', 'x2'], ['x1', 'x2']])
    expect(await runDueRetention(needsOf(shelf), 3_600_000)).toMatchObject({ accounts: 1, removedTags: 0 })
    await metadata.accounts.setState('acme', 'enabled')
    expect(await run(shelf, { repositoriesMax: 2 })).toEqual({ removedTags: 1, removedManifests: 0, next: named('b') })
    expect(await run(shelf, { after: named('b') })).toMatchObject({ removedTags: 1, next: undefined })
  })

  test('is scheduled once in each period, and continues where a server has stopped', async () => {
    const metadata = await open()
    const shelves: Shelf[] = []
    for (const account of ['acme', 'zeta']) {
      for (const name of ['a', 'b']) shelves.push(await openShelf(metadata, account, name))
    }
    for (const shelf of shelves) for (const tag of ['x1', 'x2']) await push(shelf, tag)
    const needs = { metadata, ...pushNeeds }
    for (const shelf of [shelves[0], shelves[2]]) {
      if (shelf !== undefined) await set(shelf, { rules: [{ keep: [{ tags: ['x1'] }] }] })
    }
    let asked = 0
    // It stops in the middle: some repositories are done, and the mark says which.
    const shouldStop = () => {
      asked += 1
      return asked > 6
    }
    await runDueRetention(needs, 1, shouldStop)
    const left = (await Promise.all(shelves.map(tagsOf))).flat().length
    expect([left > 4, left < 8]).toEqual([true, true])
    expect(await metadata.marks.find('retention')).toBeDefined()
    await passTime()
    const rest = await runDueRetention(needs, 1)
    expect(rest?.removedTags).toBe(left - 4)
    expect(await Promise.all(shelves.map(tagsOf))).toEqual([['x1'], ['x1'], ['x1'], ['x1']])
    expect(await metadata.marks.find('retention')).toBeUndefined()
    await passTime()
    const several = await Promise.all([1, 2, 3].map(() => runDueRetention(needs, 3_600_000)))
    expect(several.filter((one) => one !== undefined)).toHaveLength(1)
    expect(await runDueRetention(needs, 3_600_000)).toBeUndefined()
  })

  test('removes untagged manifests at the age that the account has set, and not those of others', async () => {
    const metadata = await open()
    const [shelf, other] = [await openShelf(metadata, 'acme'), await openShelf(metadata, 'zeta')]
    for (const one of [shelf, other]) {
      for (const text of ['old', 'new']) await push(one, 'latest', text)
    }
    await set(shelf, { untaggedAfter: '1ms' })
    await passTime()
    const settings = { ...pushNeeds.settings, tagHistoryMs: 0 }
    const result = await runRetention({ metadata, settings }, shelf.accountId, actor)

    expect(result).toEqual({ removedTags: 0, removedManifests: 1, next: undefined })
    const untagged = async (one: Shelf) =>
      (await metadata.untagged.list(one.repository, undefined, 10)).manifests.length
    expect([await untagged(shelf), await untagged(other)]).toEqual([0, 1])
  })
}
