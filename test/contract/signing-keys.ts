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
    test('are listed oldest first, by their ids if they are of one moment, until they are removed', async () => {
      const { keys, reopen } = await open()
      const other = reopen()
      expect([await keys.list(), await other.list()]).toEqual([[], []])
      const sorted = [keyNamed('b', 1), keyNamed('c', 2), keyNamed('a', 3), keyNamed('aa', 3), keyNamed('z', 3)]
      for (const at of [1, 4, 2, 0, 3]) await keys.add(sorted[at] ?? keyNamed('none'))
      for (const reader of [keys, other, reopen()]) expect(await reader.list()).toEqual(sorted)

      await keys.remove('never')
      await Promise.all([keys.remove('a'), other.remove('a'), keys.remove('a')])
      for (const reader of [keys, other]) expect(await reader.list()).toEqual(sorted.filter(({ kid }) => kid !== 'a'))
    })

    test('that several processes add and remove at once are all added and removed, and always whole', async () => {
      const { keys, reopen } = await open()
      const all = Array.from({ length: 20 }, (_, index) => keyNamed(`key-${String(index).padStart(2, '0')}`))
      const processes = [keys, reopen(), reopen()]
      const reader = reopen()
      let looks = 0
      /** Does it for every key, while another process lists the keys. */
      const each = async (act: (one: SigningKeys, key: SigningKey) => Promise<void>) => {
        let isDone = false
        const acting = Promise.all(all.map((key, index) => act(processes[index % 3] ?? keys, key))).finally(() => {
          isDone = true
        })
        while (!isDone) {
          for (const key of await reader.list()) expect(key).toEqual(keyNamed(key.kid))
          looks += 1
          await Bun.sleep(0)
        }
        await acting
      }

      await each((one, key) => one.add(key))
      expect(await reader.list()).toEqual(all)
      await each((one, key) => one.remove(key.kid))
      expect(await reader.list()).toEqual([])
      expect(looks).toBeGreaterThan(1)
    })
  })
}
