// The contract of accounts.
import { expect, test } from 'bun:test'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addBlob, addManifest, openShelf } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function accountsContract(open: OpenMetadataStore): void {
  test('are made enabled, without images, by their first use', async () => {
    const { accounts } = await open()

    const made = await accounts.ensure('acme')

    expect(made).toMatchObject({ name: 'acme', state: 'enabled', imageCount: 0 })
    expect(await accounts.find('acme')).toEqual(made)
    expect(await accounts.ensure('acme')).toEqual(made)
  })

  test('have no row before their first use', async () => {
    const { accounts } = await open()

    expect(await accounts.find('acme')).toBeUndefined()
  })

  test('that are disabled are not enabled by being used', async () => {
    const { accounts } = await open()
    await accounts.setState('acme', 'disabled')

    expect((await accounts.ensure('acme')).state).toBe('disabled')
  })

  test('change their state as often as they are told, and stay themselves', async () => {
    const { accounts } = await open()
    const { id } = await accounts.ensure('acme')

    for (const state of ['disabled', 'disabled', 'enabled', 'enabled', 'disabled'] as const) {
      await accounts.setState('acme', state)
      expect(await accounts.find('acme')).toMatchObject({ id, state })
    }
  })

  test('are made by setting their state', async () => {
    const { accounts } = await open()

    await accounts.setState('on', 'enabled')
    await accounts.setState('off', 'disabled')

    expect((await accounts.find('on'))?.state).toBe('enabled')
    expect((await accounts.find('off'))?.state).toBe('disabled')
  })

  test.each(['enabled', 'disabled'] as const)('that are suspended while %s are so again afterwards', async (before) => {
    const { accounts } = await open()
    await accounts.setState('acme', before)

    for (let time = 0; time < 2; time += 1) await accounts.suspend('acme')
    expect((await accounts.ensure('acme')).state).toBe('suspended')
    expect((await accounts.setState('acme', 'enabled')).state).toBe('suspended')
    expect((await accounts.list(undefined, 9)).map(({ state }) => state)).toEqual(['suspended'])

    for (let time = 0; time < 2; time += 1) expect((await accounts.resume('acme'))?.state).toBe(before)
    expect((await accounts.find('acme'))?.state).toBe(before)
  })

  test('that are disabled while they are suspended stay suspended, and are disabled afterwards', async () => {
    const { accounts } = await open()
    await accounts.ensure('acme')
    await accounts.suspend('acme')

    expect((await accounts.setState('acme', 'disabled')).state).toBe('suspended')
    expect((await accounts.resume('acme'))?.state).toBe('disabled')
  })

  test('can be suspended before their first use, but not resumed', async () => {
    const { accounts } = await open()

    expect(await accounts.resume('acme')).toBeUndefined()
    await accounts.suspend('acme')

    expect((await accounts.find('acme'))?.state).toBe('suspended')
  })

  test('are found by their number within a transaction', async () => {
    const metadata = await open()
    const account = await metadata.accounts.ensure('acme')

    expect(await metadata.transaction((tables) => tables.accounts.findLocked(account.id))).toEqual(account)
    expect(await metadata.transaction((tables) => tables.accounts.findLocked(account.id + 1))).toBeUndefined()
  })

  for (const [end, fails, verb] of [
    ['commits', false, 'disabled'],
    ['is rolled back', true, 'disabled'],
    ['commits', false, 'suspended'],
  ] as const) {
    test(`are told to be ${verb} only when a transaction that saw them enabled ${end}`, async () => {
      const metadata = await open()
      const { id } = await metadata.accounts.ensure('acme')
      const order: string[] = []
      let disabling = Promise.resolve()

      const work = metadata.transaction(async (tables) => {
        order.push(`saw ${(await tables.accounts.findLocked(id))?.state}`)
        const { accounts } = metadata
        const act = verb === 'disabled' ? accounts.setState('acme', verb) : accounts.suspend('acme')
        disabling = act.then(() => void order.push(verb))
        // Long enough for a call that does not wait.
        for (let turn = 0; turn < 20; turn += 1) await tables.accounts.findLocked(id).then(() => Bun.sleep(5))
        order.push('ended')
        if (fails) throw new Error('changed our mind')
      })
      await outcomeOf(work)
      await disabling

      expect(order).toEqual(['saw enabled', 'ended', verb])
    })
  }

  test('that are disabled already are reported as disabled only after every transaction that saw them enabled has ended', async () => {
    const metadata = await open()
    const { id } = await metadata.accounts.ensure('acme')
    const order: string[] = []
    let disabling: Promise<unknown> = Promise.resolve()

    await metadata.transaction(async (tables) => {
      await tables.accounts.findLocked(id)
      // As by two operators, or by one operator who retries because the first answer did not arrive.
      disabling = Promise.all(
        [1, 2].map(() => metadata.accounts.setState('acme', 'disabled').then(() => void order.push('disabled'))),
      )
      for (let turn = 0; turn < 20; turn += 1) await tables.accounts.findLocked(id).then(() => Bun.sleep(5))
      order.push('ended')
    })
    await disabling

    expect(order).toEqual(['ended', 'disabled', 'disabled'])
  })

  test('count their images, never below none', async () => {
    const { accounts } = await open()
    const { id } = await accounts.ensure('acme')

    await accounts.changeImageCount(id, 1)
    await accounts.changeImageCount(id, 1)
    await accounts.changeImageCount(id, -1)
    expect((await accounts.find('acme'))?.imageCount).toBe(1)
    await accounts.changeImageCount(id, -1)

    expect(await outcomeOf(accounts.changeImageCount(id, -1))).toBe('refused')
    expect((await accounts.find('acme'))?.imageCount).toBe(0)
  })

  test('made by many at once are one', async () => {
    const { accounts } = await open()

    const made = await Promise.all(Array.from({ length: 10 }, () => accounts.ensure('acme')))

    expect(new Set(made.map((account) => account.id)).size).toBe(1)
  })

  test('are listed in byte order, page by page, whatever their state', async () => {
    const { accounts } = await open()
    // Names come from identity services: any text at all.
    const names = ['A', 'B b', '_', 'a', 'a-b', 'a/b', 'aa', 'z', 'Ä', 'ä', '€', '𝄞']
    for (const name of names.toReversed()) await accounts.setState(name, name.length === 1 ? 'enabled' : 'disabled')

    const all = await accounts.list(undefined, 100)
    expect(all.map(({ name }) => name)).toEqual(names)
    expect(all).toEqual(
      await Promise.all(names.map(async (name) => (await accounts.find(name)) ?? expect.unreachable())),
    )
    expect((await accounts.list('a', 3)).map(({ name }) => name)).toEqual(['a-b', 'a/b', 'aa'])
    expect((await accounts.list('a!', 1)).map(({ name }) => name)).toEqual(['a-b'])
    expect(await accounts.list('𝄞', 10)).toEqual([])
    expect(await accounts.list(undefined, 0)).toEqual([])
  })

  test('that hold nothing measure nothing', async () => {
    const { accounts } = await open()
    const { id } = await accounts.ensure('acme')

    const nothing = { repositories: 0, manifests: 0, tags: 0, blobs: 0, blobBytes: 0 }
    expect(await accounts.measure(id)).toEqual(nothing)
    expect(await accounts.measure(id + 1)).toEqual(nothing)
  })

  test('measure what they hold, each blob once, and nothing of one another', async () => {
    const metadata = await open()
    const [app, tool] = [await openShelf(metadata), await openShelf(metadata, 'acme', 'tool')]
    const rival = await openShelf(metadata, 'rival')
    const layer = await addBlob(app, '12345')
    await metadata.transaction(({ blobs }) => blobs.link(tool.repository, layer.id, layer.digest))
    await addManifest(app, 'one', { blobs: [layer, await addBlob(app, '123')], tag: 'latest' })
    await addManifest(tool, 'two', { blobs: [layer], tag: 'latest' })
    await addManifest(tool, 'two', { blobs: [layer], tag: 'again' })
    await addManifest(rival, 'one', { blobs: [await addBlob(rival, '12345')], tag: 'latest' })

    expect(await metadata.accounts.measure(app.accountId)).toEqual({
      repositories: 2,
      manifests: 2,
      tags: 3,
      blobs: 2,
      blobBytes: 8,
    })
    expect(await metadata.accounts.measure(rival.accountId)).toEqual({
      repositories: 1,
      manifests: 1,
      tags: 1,
      blobs: 1,
      blobBytes: 5,
    })
  })
}
