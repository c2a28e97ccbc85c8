// The contract of the history of tags.
import { expect, test } from 'bun:test'
import type { HistoryPosition, TagMove } from '../../src/ports/tag-history.ts'
import type { TagChange } from '../../src/ports/tags.ts'
import { enableAccount, resumeAccount } from '../../src/registry/accounts.ts'
import { removeOldTagMoves } from '../../src/registry/tag-history.ts'
import { addManifest, hourMs, openShelf, passTime, type Shelf, tagged } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const by = (subject: string, cause: TagChange['cause']): TagChange => ({ actor: { subject }, cause })
const names = ['a', 'b', 'c'].map(tagged)

/** The moves as the contract shows them: without ids and times, the newest first. */
async function movesOf({ metadata, repository }: Shelf, tag = names[0] ?? tagged('a')): Promise<TagMove[]> {
  return metadata.tagHistory.list(repository, tag, undefined, 1000)
}

export function tagHistoryContract(open: OpenMetadataStore): void {
  test('has every move with its caller and its cause, and no push of the same digest', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository } = shelf
    const [one, two] = [await addManifest(shelf, 'one'), await addManifest(shelf, 'two')]
    const [a, b] = [tagged('a'), tagged('b')]
    await metadata.transaction(async ({ tags }) => {
      await tags.point(repository, a, one.id, by('ann', 'push'))
      await tags.point(repository, a, one.id, by('ben', 'push'))
      await tags.point(repository, a, two.id, by('ben', 'push'))
      await tags.point(repository, b, two.id, by('ben', 'push'))
    })
    await metadata.transaction(({ tags }) => tags.remove(scope, b, by('cleo', 'tag deleted')))
    await metadata.transaction(({ tags }) => tags.remove(scope, b, by('cleo', 'tag deleted')))
    await metadata.transaction(({ tags }) => tags.removeAllOf(repository, two.id, by('dora', 'manifest deleted')))
    await metadata.transaction(({ tags }) => tags.point(repository, a, one.id, by('ann', 'restore')))

    const show = ({ from, to, movedBy, cause }: TagMove) => [from, to, movedBy, cause]
    expect((await movesOf(shelf, a)).map(show)).toEqual([
      [undefined, one.digest, 'ann', 'restore'],
      [two.digest, undefined, 'dora', 'manifest deleted'],
      [one.digest, two.digest, 'ben', 'push'],
      [undefined, one.digest, 'ann', 'push'],
    ])
    expect((await movesOf(shelf, b)).map(show)).toEqual([
      [two.digest, undefined, 'cleo', 'tag deleted'],
      [undefined, two.digest, 'ben', 'push'],
    ])
  })

  test('is rolled back with its transaction, and is of one repository', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'acme', 'other')
    const { id } = await addManifest(shelf, 'one')
    await addManifest(other, 'one', { tag: 'a' })
    const moving = shelf.metadata.transaction(async ({ tags }) => {
      await tags.point(shelf.repository, tagged('a'), id, by('ann', 'push'))
      throw new Error('not this time')
    })

    expect(await moving.catch(String)).toContain('not this time')
    expect([(await movesOf(shelf)).length, (await movesOf(other)).length]).toEqual([0, 1])
  })

  test('tells where a tag pointed at any time, page by page, as a model does, and no less after old moves are removed', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository } = shelf
    const manifests = [
      await addManifest(shelf, 'one'),
      await addManifest(shelf, 'two'),
      await addManifest(shelf, 'three'),
    ]
    /** What each tag pointed to after each step. */
    const model: { readonly time: number; readonly digests: ReadonlyMap<string, string> }[] = []
    const digests = new Map<string, string>()
    for (let step = 0; step < 60; step += 1) {
      const [tag, manifest] = [names[step % 3] ?? tagged('a'), manifests[(Math.floor(step / 3) + step) % 3]]
      await metadata.transaction(async ({ tags }) => {
        if (step % 7 === 6) await tags.remove(scope, tag, by('ann', 'tag deleted'))
        else await tags.point(repository, tag, manifest?.id ?? 0, by('ann', 'push'))
      })
      if (step % 7 === 6) digests.delete(tag)
      else digests.set(tag, manifest?.digest ?? '')
      model.push({ time: await metadata.now(), digests: new Map(digests) })
      await passTime()
    }
    const check = async (from: number) => {
      for (const { time, digests } of model.slice(from)) {
        const seen = await Promise.all(
          names.map(async (tag) => {
            const last = await metadata.tagHistory.findLastUntil(repository, tag, time)
            return (last ?? { to: (await metadata.tagHistory.findFirstAfter(repository, tag, time))?.from }).to
          }),
        )
        expect(seen.map(String)).toEqual(names.map((tag) => String(digests.get(tag))))
      }
    }
    await check(0)
    for (const tag of names) {
      const all = await movesOf(shelf, tag)
      const paged: TagMove[] = []
      for (let page = all.slice(0, 0), before: HistoryPosition | undefined; ; before = page.at(-1)) {
        page = await metadata.tagHistory.list(repository, tag, before, 3)
        if (page.length === 0) break
        paged.push(...page)
      }
      expect(paged).toEqual(all)
    }

    const kept = 30
    let position: HistoryPosition | undefined
    let removed = 0
    do {
      const keepMs = (await metadata.now()) - (model[kept]?.time ?? 0)
      const batch = await metadata.transaction(({ tagHistory }) => tagHistory.removeSuperseded(keepMs, position, 4))
      position = batch.next
      removed += batch.removed
    } while (position !== undefined)

    expect(removed).toBeGreaterThan(20)
    await check(kept + 1)
    const nothing = await metadata.transaction(({ tagHistory }) => tagHistory.removeSuperseded(hourMs, undefined, 4))
    expect(nothing).toEqual({ removed: 0, next: undefined })
  })

  test.each(['disabled', 'suspended'] as const)(
    'is not removed while the account is %s, and is removed afterwards',
    async (state) => {
      const shelf = await openShelf(await open())
      const { metadata } = shelf
      for (const text of ['one', 'two', 'three']) await addManifest(shelf, text, { tag: 'a' })
      if (state === 'disabled') await metadata.accounts.setState('acme', 'disabled')
      else await metadata.accounts.suspend('acme')
      await passTime()
      const remove = () => removeOldTagMoves({ metadata }, { tagHistoryMs: 0 }, () => false)

      expect([await remove(), (await movesOf(shelf)).length]).toEqual([0, 3])
      const blobs = { probe: async () => undefined }
      if (state === 'disabled') await enableAccount({ metadata, blobs }, 'acme')
      else await resumeAccount({ metadata }, 'acme')
      expect([await remove(), (await movesOf(shelf)).length]).toEqual([2, 1])
    },
  )
}
