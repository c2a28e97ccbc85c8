import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  freshName,
  isUploadKey,
  parseObjectName,
  toObjectName,
  uploadKeyOf,
} from '../../../../src/adapters/blobs-s3/object-names.ts'
import type { StorageKey } from '../../../../src/ports/blob-store.ts'
import { freshKey } from '../../../support/stores/stored-objects.ts'

const prefix = fc.constantFrom('', 'berth/', 'a/b c/', 'ü/')
const keys = fc.oneof(
  fc.constant(undefined).map(freshKey),
  fc.constant(undefined).map(() => freshName(freshKey())),
)

describe('a name of an object', () => {
  test('can be read back, and tells the upload that it was made for', () => {
    fc.assert(
      fc.property(prefix, keys, (before, key) => {
        const name = toObjectName(before, key)

        expect(parseObjectName(before, name)).toBe(key)
        expect(isUploadKey(uploadKeyOf(key))).toBe(true)
        expect(name.startsWith(toObjectName(before, uploadKeyOf(key)))).toBe(true)
      }),
    )
  })

  test('is never the same for two writers of one upload', () => {
    const key = freshKey()
    const names = Array.from({ length: 100 }, () => freshName(key))

    expect(new Set(names).size).toBe(names.length)
    expect(names.filter((name) => isUploadKey(name) || uploadKeyOf(name) !== key)).toEqual([])
  })

  test('is made again from the name that another writer had', () => {
    const key = freshKey()

    expect(uploadKeyOf(freshName(freshName(key)))).toBe(key)
    expect(freshName(freshName(key))).toHaveLength(freshName(key).length)
  })

  test.each([
    '',
    '..',
    '../../another',
    '0193a7c2-0000-7000-8000-000000000000/../x',
    '0193A7C2-0000-7000-8000-000000000000',
    '0193a7c2-0000-7000-8000-000000000000-',
    '0193a7c2-0000-7000-8000-000000000000-5f3a9c1',
    '0193a7c2-0000-7000-8000-000000000000-5f3a9c1e\n',
    ' 0193a7c2-0000-7000-8000-000000000000',
  ])('is not made of a damaged key: %j', (key) => {
    expect(() => toObjectName('berth/', key as StorageKey)).toThrow('the storage key is not valid')
  })

  test('is made of nothing that is no key, whatever it is', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => toObjectName('berth/', text as StorageKey)).toThrow()
        expect(parseObjectName('berth/', `berth/${text}`)).toBeUndefined()
      }),
    )
  })

  test('of another program is not taken for one', () => {
    const key = freshKey()
    const name = toObjectName('berth/', key)
    const folder = key.slice(-2)
    const others = [
      name.slice('berth/'.length),
      `berth/inner/${folder}/${key}`,
      `berth/${folder}/${key}/more`,
      `berth/${folder}/${key}.bak`,
      `berth/xx/${key}`,
      `berth/${folder}-${key}`,
      `bert//${folder}/${key}`,
    ]

    expect(others.map((other) => parseObjectName('berth/', other))).toEqual(others.map(() => undefined))
    expect(parseObjectName('berth/', name)).toBe(key)
  })
})
