// The contract of the last pulls, through the recorder that collects them.
import { expect, test } from 'bun:test'
import type { Reference } from '../../src/oci/names.ts'
import { describeManifest, getManifest } from '../../src/registry/manifests.ts'
import { PullRecorder } from '../../src/registry/pulls.ts'
import { deleteTag } from '../../src/registry/tags.ts'
import { addManifest, hourMs, openShelf, type Shelf, tagChange, tagged } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

/** A server with its own recorder, at the time of `clock`. */
function serverOf({ metadata, scope }: Shelf, clock: { readonly now: () => number }, countsHead = true) {
  const pulls = new PullRecorder(metadata, clock, { periodMs: hourMs, countsHead })
  return {
    flush: () => pulls.flush(),
    pull: async (reference: Reference) => getManifest({ metadata, pulls }, scope, reference),
    head: async (reference: Reference) => describeManifest({ metadata, pulls }, scope, reference),
  }
}

export function pullsContract(open: OpenMetadataStore): void {
  test('are the first of each hour for each tag and manifest, whatever is pulled, moved and deleted on two servers', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository } = shelf
    let now = 1_000 * hourMs
    const servers = [serverOf(shelf, { now: () => now }), serverOf(shelf, { now: () => now })]
    const names = ['a', 'b', 'c'].map(tagged)
    const manifests = [await addManifest(shelf, '0'), await addManifest(shelf, '1'), await addManifest(shelf, '2')]
    const tags = new Map<string, number>()
    /** By tag, and by `manifest <place>`. */
    const model = new Map<string, number>()
    const recorded: number[] = []
    const record = (key: string) => {
      const last = model.get(key) ?? 0
      if (Math.floor(last / hourMs) === Math.floor(now / hourMs)) return
      model.set(key, now)
      recorded.push(now)
    }
    let seed = 11
    const draw = (count: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648
      return Math.floor((seed / 2147483648) * count)
    }
    for (let step = 0; step < 120; step += 1) {
      const [place, name, server] = [draw(3), names[draw(3)] ?? tagged('a'), servers[draw(2)]]
      const { id, digest } = manifests[place] ?? (await addManifest(shelf, '0'))
      const action = draw(8)
      if (action === 0) {
        await metadata.transaction((tables) => tables.tags.point(repository, name, id, tagChange))
        tags.set(name, place)
      } else if (action === 1 && tags.delete(name)) {
        await deleteTag(shelf, scope, name, tagChange.actor)
        model.delete(name)
      } else if (action === 2 && draw(3) === 0) {
        await metadata.transaction(async (tables) => {
          await tables.tags.removeAllOf(repository, id, tagChange)
          await tables.manifests.remove(repository, id)
        })
        model.delete(`manifest ${place}`)
        for (const [tag, of] of tags) if (of === place && tags.delete(tag)) model.delete(tag)
        manifests[place] = await addManifest(shelf, `${place}`)
      } else if (action < 5 && tags.has(name)) {
        await (draw(2) === 0 ? server?.pull({ tag: name }) : server?.head({ tag: name }))
        for (const key of [name, `manifest ${tags.get(name)}`]) record(key)
      } else if (action === 5) {
        await server?.pull({ digest })
        record(`manifest ${place}`)
      } else if (action === 6) await server?.head({ digest })
      else now += draw(40) * 60_000
      for (const each of servers) await each.flush()

      const ids = manifests.map((manifest) => manifest.id)
      const found = new Map<string, number>(await metadata.pulls.findOfTags(repository, names))
      for (const [id, time] of await metadata.pulls.findOfManifests(repository, ids)) {
        found.set(`manifest ${ids.indexOf(id)}`, time)
      }
      expect([step, found]).toEqual([step, model])
    }
    expect(await metadata.pulls.findOfRepository(repository)).toBeGreaterThan(Math.max(...recorded) - hourMs)
    expect(recorded.length).toBeGreaterThan(20)
  })

  test('wait while the registry is read-only, and are of one account and repository', async () => {
    const shelf = await openShelf(await open())
    const others = [await openShelf(shelf.metadata, 'acme', 'other'), await openShelf(shelf.metadata, 'rival')]
    const all = [shelf, ...others]
    const added = await Promise.all(all.map((each) => addManifest(each, 'one', { tag: 'latest' })))
    const server = serverOf(shelf, { now: () => 5 * hourMs })
    await server.pull({ tag: tagged('latest') })
    const timesOf = () =>
      Promise.all(
        all.map(async ({ metadata, repository }, at) => [
          ...(await metadata.pulls.findOfTags(repository, [tagged('latest')])).values(),
          ...(await metadata.pulls.findOfManifests(repository, [added[at]?.id ?? 0])).values(),
          await metadata.pulls.findOfRepository(repository),
        ]),
      )

    await shelf.metadata.marks.set('read-only', 'moved')
    await server.flush()
    expect(await timesOf()).toEqual([[undefined], [undefined], [undefined]])
    await shelf.metadata.marks.remove('read-only')
    await server.flush()
    expect(await timesOf()).toEqual([[5 * hourMs, 5 * hourMs, 5 * hourMs], [undefined], [undefined]])
  })

  test('do not count a HEAD by tag if the setting says so', async () => {
    const shelf = await openShelf(await open())
    await addManifest(shelf, 'one', { tag: 'latest' })
    const server = serverOf(shelf, { now: () => 5 * hourMs }, false)
    await server.head({ tag: tagged('latest') })
    await server.flush()

    expect(await shelf.metadata.pulls.findOfRepository(shelf.repository)).toBeUndefined()
  })
}
