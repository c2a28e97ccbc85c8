import { describe, expect, test } from 'bun:test'
import {
  acceptedByDefault,
  dockerManifest,
  dockerManifestList,
  ociIndex,
  ociManifest,
  shapeOf,
  withoutParameters,
} from '../../../src/oci/media-types.ts'

describe('media types', () => {
  test('exactly three are accepted by default', () => {
    expect([...acceptedByDefault]).toEqual([dockerManifest, ociManifest, ociIndex])
  })

  test('each known one has its shape, and no other has one', () => {
    expect([dockerManifest, ociManifest].map(shapeOf)).toEqual(['image', 'image'])
    expect([ociIndex, dockerManifestList].map(shapeOf)).toEqual(['index', 'index'])
    for (const other of ['', 'application/json', 'toString', '__proto__', `${ociIndex} `, ociIndex.toUpperCase()]) {
      expect(shapeOf(other)).toBeUndefined()
    }
  })

  test.each([
    [ociIndex, ociIndex],
    [`${ociIndex}; charset=utf-8`, ociIndex],
    [`${ociIndex};`, ociIndex],
    [`  ${ociIndex} ;a=b;c="d;e"`, ociIndex],
    [`\t${ociIndex.toUpperCase()}\t`, ociIndex],
    ['', ''],
    [';', ''],
    [';charset=utf-8', ''],
    [`${ociIndex}, ${ociManifest}`, `${ociIndex}, ${ociManifest}`],
  ])('%p is compared as %p', (contentType, expected) => {
    expect(withoutParameters(contentType)).toBe(expected)
  })
})
