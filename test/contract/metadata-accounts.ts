// The contract of accounts.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Accounts } from '../../src/ports/accounts.ts'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addBlob, addManifest, openShelf } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const verbs = ['ensure', 'enable', 'disable', 'suspend', 'resume'] as const

export function accountsContract(open: OpenMetadataStore): void {
  test('are created enabled by their first use, once by many at once', async () => {
    const metadata = await open()
    const { accounts } = metadata
    expect(await accounts.find('acme')).toBeUndefined()

    const created = await Promise.all(Array.from({ length: 10 }, () => accounts.ensure('acme')))

    const [account] = created
    expect(account).toMatchObject({ name: 'acme', state: 'enabled' })
    expect(new Set(created.map(({ id }) => id)).size).toBe(1)
    expect(await accounts.find('acme')).toEqual(account)
    const findLocked = (id = 0) => metadata.transaction((tables) => tables.accounts.findLocked(id))
    expect([await findLocked(account?.id), await findLocked()]).toEqual([account, undefined])
  })

  test('go from state to state as the model says, and come back from a suspension as they were', async () => {
    const { accounts } = await open()
    let number = 0
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...verbs), { minLength: 1, maxLength: 12 }), async (steps) => {
        number += 1
        const name = `account ${number}`
        let state: 'enabled' | 'disabled' | undefined
        let isSuspended = false
        for (const verb of steps) {
          await act(accounts, name, verb)
          if (verb === 'ensure') state ??= 'enabled'
          else if (verb === 'enable' && !isSuspended) state = 'enabled'
          else if (verb === 'disable') state = 'disabled'
          else if (verb === 'suspend') {
            // An account that is suspended before its first use is disabled afterwards.
            state ??= 'disabled'
            isSuspended = true
          } else if (verb === 'resume') isSuspended = false
          const expected = isSuspended ? 'suspended' : state
          expect([steps, verb, (await accounts.find(name))?.state]).toEqual([steps, verb, expected])
        }
      }),
      { numRuns: 40 },
    )
  })

  for (const [end, fails, verb, times] of [
    ['commits', false, 'disable', 1],
    ['is rolled back', true, 'disable', 1],
    ['commits', false, 'suspend', 1],
    // As by two operators, or by one operator who retries because the first answer did not arrive.
    ['commits, also to the second caller', false, 'disable', 2],
  ] as const) {
    test(`tell the caller of ${verb} only when a transaction that saw them enabled ${end}`, async () => {
      const metadata = await open()
      const { id } = await metadata.accounts.ensure('acme')
      const order: (string | undefined)[] = []
      let acting: Promise<unknown> = Promise.resolve()

      const work = metadata.transaction(async (tables) => {
        order.push((await tables.accounts.findLocked(id))?.state)
        const calls = Array.from({ length: times }, () => act(metadata.accounts, 'acme', verb))
        acting = Promise.all(calls.map((call) => call.then(() => order.push(verb))))
        // Long enough for a call that does not wait.
        for (let turn = 0; turn < 20; turn += 1) await tables.accounts.findLocked(id).then(() => Bun.sleep(5))
        order.push('ended')
        if (fails) throw new Error('changed our mind')
      })
      await outcomeOf(work)
      await acting

      expect(order).toEqual(['enabled', 'ended', ...Array.from({ length: times }, () => verb)])
    })
  }

  test('are listed in byte order, page by page, whatever their state', async () => {
    const { accounts } = await open()
    // Names come from identity services: any text at all.
    const names = ['A', 'B b', '_', 'a', 'a-b', 'a/b', 'aa', 'z', 'Ä', 'ä', '€', '𝄞']
    for (const name of names.toReversed()) await accounts.setState(name, name.length === 1 ? 'enabled' : 'disabled')
    const list = async (after: string | undefined, limit: number) =>
      (await accounts.list(after, limit)).map(({ name }) => name)

    expect(await list(undefined, 100)).toEqual(names)
    expect(await accounts.list(undefined, 100)).toEqual(
      await Promise.all(names.map(async (name) => (await accounts.find(name)) ?? expect.unreachable())),
    )
    expect(await list('a', 3)).toEqual(['a-b', 'a/b', 'aa'])
    expect(await list('a!', 1)).toEqual(['a-b'])
    expect([await list('𝄞', 10), await list(undefined, 0)]).toEqual([[], []])
  })

  test('measure what they hold, each blob once, and nothing of one another', async () => {
    const metadata = await open()
    const [app, tool] = [await openShelf(metadata), await openShelf(metadata, 'acme', 'tool')]
    const rival = await openShelf(metadata, 'rival')
    const { id: empty } = await metadata.accounts.ensure('empty')
    const layer = await addBlob(app, '12345')
    await metadata.transaction(({ blobs }) => blobs.link(tool.repository, layer.id, layer.digest))
    await addManifest(app, 'one', { blobs: [layer, await addBlob(app, '123')], tag: 'latest' })
    await addManifest(tool, 'two', { blobs: [layer], tag: 'latest' })
    await addManifest(tool, 'two', { blobs: [layer], tag: 'again' })
    await addManifest(rival, 'one', { blobs: [await addBlob(rival, '12345')], tag: 'latest' })
    const { measure } = metadata.accounts
    const sums = async (id: number) => Object.values(await measure.call(metadata.accounts, id))

    const content = await metadata.accounts.measure(app.accountId)
    expect(content).toEqual({ repositories: 2, manifests: 2, tags: 3, blobs: 2, blobBytes: 8 })
    expect(await sums(rival.accountId)).toEqual([1, 1, 1, 1, 5])
    for (const nothing of [empty, 999_999]) expect(await sums(nothing)).toEqual([0, 0, 0, 0, 0])
  })
}

async function act(accounts: Accounts, name: string, verb: (typeof verbs)[number]): Promise<unknown> {
  if (verb === 'enable' || verb === 'disable') return accounts.setState(name, `${verb}d`)
  return accounts[verb](name)
}
