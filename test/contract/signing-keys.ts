// What every keeper of signing keys promises (src/ports/signing-keys.ts), as tests.
import { describe, expect, test } from 'bun:test'
import type { SigningKey, SigningKeys } from '../../src/ports/signing-keys.ts'
import { errorOf } from '../support/outcomes.ts'

export interface OpenedSigningKeys {
  readonly keys: SigningKeys
  /** The same keys, as another process finds them. */
  reopen(): SigningKeys
}

export function keyNamed(kid: string): SigningKey {
  return { kid, privateJwk: { kty: 'OKP', crv: 'Ed25519', x: 'public', d: `secret of ${kid}` } }
}

export function signingKeysContract(name: string, open: () => Promise<OpenedSigningKeys>): void {
  describe(`signing keys, ${name}`, () => {
    test('the first call makes the key, later ones find it, after a restart too', async () => {
      const { keys, reopen } = await open()
      let made = 0
      const generate = async () => {
        made += 1
        return keyNamed(`key ${made}`)
      }

      expect(await keys.current(generate)).toEqual(keyNamed('key 1'))
      expect(await keys.current(generate)).toEqual(keyNamed('key 1'))
      expect(await reopen().current(generate)).toEqual(keyNamed('key 1'))
      expect(made).toBe(1)
    })

    test('a key that cannot be made is not kept', async () => {
      const { keys } = await open()

      await errorOf(keys.current(() => Promise.reject(new Error('no chance today'))))

      expect(await keys.current(async () => keyNamed('key 2'))).toEqual(keyNamed('key 2'))
    })

    test('all who ask for the first key at once get the same one', async () => {
      const { keys, reopen } = await open()
      const askers = [keys, reopen(), reopen(), keys]

      const given = await Promise.all(askers.map((asker, n) => asker.current(async () => keyNamed(`key ${n}`))))

      expect(new Set(given.map((key) => key.kid)).size).toBe(1)
      expect(await reopen().current(async () => keyNamed('another'))).toEqual(given[0] ?? keyNamed('none'))
    })
  })
}
