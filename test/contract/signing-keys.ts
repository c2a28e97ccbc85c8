// The contract of every store of signing keys (src/ports/signing-keys.ts).
import { describe, expect, test } from 'bun:test'
import type { SigningKey, SigningKeys } from '../../src/ports/signing-keys.ts'

export interface OpenedSigningKeys {
  readonly keys: SigningKeys
  /** The same keys, as another process finds them. */
  reopen(): SigningKeys
}

export function keyNamed(kid: string, createdAt = 1_800_000_000_000): SigningKey {
  return { kid, createdAt, privateJwk: { kty: 'OKP', crv: 'Ed25519', x: 'public', d: `secret of ${kid}` } }
}

export function signingKeysContract(name: string, open: () => Promise<OpenedSigningKeys>): void {
  describe(`signing keys, ${name}`, () => {
    test('are none before the first is added', async () => {
      const { keys } = await open()

      expect(await keys.list()).toEqual([])
    })

    test('are listed as they were added, oldest first, whatever order they came in', async () => {
      const { keys } = await open()
      const [first, second, third] = [keyNamed('b', 1), keyNamed('c', 2), keyNamed('a', 3)]
      for (const key of [second, third, first]) await keys.add(key)

      expect(await keys.list()).toEqual([first, second, third])
    })

    test('of one moment are always in the same order', async () => {
      const { keys, reopen } = await open()
      for (const kid of ['c', 'a', 'b']) await keys.add(keyNamed(kid))

      const order = (await keys.list()).map(({ kid }) => kid)

      expect(order.toSorted()).toEqual(['a', 'b', 'c'])
      expect((await reopen().list()).map(({ kid }) => kid)).toEqual(order)
    })

    test('are found by another process, and after a restart', async () => {
      const { keys, reopen } = await open()
      const other = reopen()
      await other.list()

      await keys.add(keyNamed('one'))

      expect(await other.list()).toEqual([keyNamed('one')])
      expect(await reopen().list()).toEqual([keyNamed('one')])
    })

    test('that several processes add at once are all kept, and whole', async () => {
      const { keys, reopen } = await open()
      const kids = Array.from({ length: 20 }, (_, index) => `key-${String(index).padStart(2, '0')}`)
      const adders = [keys, reopen(), reopen()]

      await Promise.all(kids.map((kid, index) => adders[index % 3]?.add(keyNamed(kid))))

      expect(await reopen().list()).toEqual(kids.map((kid) => keyNamed(kid)))
    })

    test('that are being added are there whole or not at all', async () => {
      const { keys, reopen } = await open()
      const reader = reopen()
      let isDone = false
      const adding = Promise.all(
        Array.from({ length: 20 }, (_, index) => keys.add(keyNamed(`key-${index}`, index))),
      ).finally(() => {
        isDone = true
      })

      let looks = 0
      while (!isDone) {
        for (const key of await reader.list()) expect(key).toEqual(keyNamed(key.kid, key.createdAt))
        looks += 1
        await Bun.sleep(0)
      }
      await adding

      expect(looks).toBeGreaterThan(0)
      expect((await reader.list()).length).toBe(20)
    })

    test('that are removed are gone for every reader, and the others stay', async () => {
      const { keys, reopen } = await open()
      for (const kid of ['one', 'other']) await keys.add(keyNamed(kid))

      await reopen().remove('one')

      expect(await keys.list()).toEqual([keyNamed('other')])
    })

    test('that are gone already, or never were, can be removed', async () => {
      const { keys, reopen } = await open()
      await keys.remove('never')
      await keys.add(keyNamed('one'))

      await Promise.all([keys.remove('one'), reopen().remove('one'), keys.remove('one')])

      expect(await keys.list()).toEqual([])
    })

    test('can be removed while others list them', async () => {
      const { keys, reopen } = await open()
      const kids = Array.from({ length: 20 }, (_, index) => `key-${index}`)
      for (const kid of kids) await keys.add(keyNamed(kid))
      const reader = reopen()

      const lists = kids.map(async (kid) => {
        const [listed] = await Promise.all([reader.list(), keys.remove(kid)])
        return listed.length
      })

      expect(Math.max(...(await Promise.all(lists)))).toBeLessThanOrEqual(20)
      expect(await reader.list()).toEqual([])
    })
  })
}
