import { expect, test } from 'bun:test'
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

test('a name of an object is parsed as it was made, and tells the upload that it was made for', () => {
  for (const prefix of ['', 'berth/', 'a/b c/', 'ü/']) {
    const upload = freshKey()
    for (const key of [upload, freshName(upload), freshName(freshName(upload))]) {
      const name = toObjectName(prefix, key)
      expect([parseObjectName(prefix, name), uploadKeyOf(key), isUploadKey(key)]).toEqual([key, upload, key === upload])
      expect(name.startsWith(toObjectName(prefix, upload))).toBe(true)
    }
  }
})

test('each writer of an upload has another name', () => {
  const key = freshKey()
  expect(new Set(Array.from({ length: 100 }, () => freshName(key))).size).toBe(100)
})

test('no name is made of a text that is no key', () => {
  const damaged = [
    '..',
    '../../another',
    '0193a7c2-0000-7000-8000-000000000000/../x',
    '0193A7C2-0000-7000-8000-000000000000',
    '0193a7c2-0000-7000-8000-000000000000-',
    '0193a7c2-0000-7000-8000-000000000000-5f3a9c1',
    '0193a7c2-0000-7000-8000-000000000000-5f3a9c1e\n',
    ' 0193a7c2-0000-7000-8000-000000000000',
  ]
  fc.assert(
    fc.property(fc.oneof(fc.constantFrom(...damaged), fc.string()), (text) => {
      expect(() => toObjectName('berth/', text as StorageKey)).toThrow('the storage key is not valid')
      expect(parseObjectName('berth/', `berth/${text}`)).toBeUndefined()
    }),
  )
})

test('objects of other programs are ignored', () => {
  const key = freshKey()
  const folder = key.slice(-2)
  const others = [
    `${folder}/${key}`,
    `berth/inner/${folder}/${key}`,
    `berth/${folder}/${key}/more`,
    `berth/${folder}/${key}.bak`,
    `berth/xx/${key}`,
    `berth/${folder}-${key}`,
    `bert//${folder}/${key}`,
  ]
  expect(others.map((other) => parseObjectName('berth/', other))).toEqual(others.map(() => undefined))
  expect(parseObjectName('berth/', `berth/${folder}/${key}`)).toBe(key)
})
