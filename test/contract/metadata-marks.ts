// The contract of marks: notes about the store as a whole, and the one that forbids changes.
import { expect, test } from 'bun:test'
import type { MetadataStore, Tables } from '../../src/ports/metadata-store.ts'
import { Gate } from '../support/clocks/gates.ts'
import { openShelf } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

/** Long enough for whatever does not wait to be done. */
const longMs = 150

function forbid(metadata: MetadataStore): Promise<void> {
  return metadata.transaction(async ({ marks }) => {
    await marks.lockExclusively()
    await marks.set('read-only', 'because')
  })
}

export function marksContract(open: OpenMetadataStore): void {
  test('are there from when they are put, with their last text, until they are removed', async () => {
    const metadata = await open()
    const { marks } = metadata
    expect(await marks.find('store-id')).toBeUndefined()

    await metadata.transaction((tables) => tables.marks.set('store-id', 'one'))
    await metadata.transaction((tables) => tables.marks.set('store-id', 'other'))
    expect(await marks.find('store-id')).toBe('other')
    expect(await metadata.transaction((tables) => tables.marks.findLocked('store-id'))).toBe('other')
    expect(await marks.find('move-from')).toBeUndefined()

    await metadata.transaction((tables) => tables.marks.remove('store-id'))
    expect(await marks.find('store-id')).toBeUndefined()
  })

  test('tell every account, however it is found, that nothing may change', async () => {
    const metadata = await open()
    const { accountId } = await openShelf(metadata)
    const seen = async () => [
      (await metadata.accounts.find('acme'))?.isReadOnly,
      (await metadata.transaction(({ accounts }) => accounts.findLocked(accountId)))?.isReadOnly,
      (await metadata.accounts.list(undefined, 10))[0]?.isReadOnly,
    ]
    expect(await seen()).toEqual([false, false, false])

    await metadata.transaction(({ marks }) => marks.set('store-id', 'another mark'))
    expect(await seen()).toEqual([false, false, false])

    await forbid(metadata)
    expect(await seen()).toEqual([true, true, true])

    await metadata.transaction(({ marks }) => marks.remove('read-only'))
    expect(await seen()).toEqual([false, false, false])
  })

  const looks: Readonly<Record<string, (tables: Tables, accountId: number) => Promise<unknown>>> = {
    'the account': ({ accounts }, accountId) => accounts.findLocked(accountId),
    'the mark': ({ marks }) => marks.findLocked('read-only'),
  }

  for (const [what, look] of Object.entries(looks)) {
    test(`wait for transactions that have read ${what}; a transaction that reads it meanwhile sees the mark`, async () => {
      const metadata = await open()
      const { accountId, scope } = await openShelf(metadata)
      const ended: string[] = []
      // Once before, so that the statement is one that the engine has prepared.
      await metadata.transaction((tables) => look(tables, accountId))
      const gate = new Gate()
      const first = metadata.transaction(async (tables) => {
        expect(what === 'the mark' ? await look(tables, accountId) : undefined).toBeUndefined()
        await look(tables, accountId)
        await gate.pass()
        // It goes on to change what it has looked at, and no transaction ends in a deadlock.
        await tables.repositories.ensure(scope)
        ended.push('first')
      })
      await gate.reached

      const forbidden = forbid(metadata).then(() => ended.push('forbidden'))
      await Bun.sleep(longMs)
      const late = metadata.transaction(async (tables) => {
        const found = await look(tables, accountId)
        ended.push('late')
        return found
      })
      await Bun.sleep(longMs)
      expect(ended).toEqual([])
      // Readers do not wait for any of them.
      expect(await metadata.accounts.find('acme')).toMatchObject({ isReadOnly: false })
      expect(await metadata.marks.find('read-only')).toBeUndefined()

      gate.open()
      await Promise.all([first, forbidden])
      const seen = await late
      expect(what === 'the mark' ? seen : (seen as { isReadOnly: boolean }).isReadOnly).toBe(
        what === 'the mark' ? 'because' : true,
      )
      expect(ended.indexOf('first')).toBe(0)
    })
  }

  test('that were put by a failed transaction were never there, and delay no other transaction', async () => {
    const metadata = await open()
    const { accountId } = await openShelf(metadata)
    const failed = metadata.transaction(async ({ marks }) => {
      await marks.lockExclusively()
      await marks.set('read-only', 'because')
      throw new Error('no')
    })

    expect(await failed.catch((error: Error) => error.message)).toBe('no')
    expect((await metadata.transaction(({ accounts }) => accounts.findLocked(accountId)))?.isReadOnly).toBe(false)
  })
}
