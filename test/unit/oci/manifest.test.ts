import { describe, expect, test } from 'bun:test'
import { parseManifest } from '../../../src/oci/manifest.ts'
import { dockerManifest, ociIndex, ociManifest } from '../../../src/oci/media-types.ts'
import { catchRefusal, refusalOf } from '../../support/basics/outcomes.ts'
import {
  type Body,
  descriptor,
  imageBody,
  indexBody,
  limits,
  parse,
  toBytes,
} from '../../support/clients/manifest-bodies.ts'

describe('an image', () => {
  test('names its config and its layers, in that order', () => {
    const { shape, blobs, children, mediaType } = parse(imageBody(), dockerManifest)
    expect({ shape, mediaType, children }).toEqual({ shape: 'image', mediaType: dockerManifest, children: [] })
    expect(blobs.map(({ digest }) => digest.at(-1) ?? '')).toEqual(['c', 'a', 'b'])
  })

  test('may have no layers, layers of any type, and unknown fields', () => {
    expect(parse(imageBody({ layers: [] }), ociManifest).blobs.length).toBe(1)
    const more = { layers: [descriptor('a', { mediaType: 'made/up' })], foo: { bar: [1] }, history: [], __proto: 1 }
    expect(parse(imageBody(more), ociManifest).blobs.length).toBe(2)
  })
})

test('an index names its children and no blobs, and may be empty', () => {
  const { shape, blobs, children } = parse(indexBody(), ociIndex)
  expect({ shape, blobs }).toEqual({ shape: 'index', blobs: [] })
  expect(children.map(({ digest }) => digest.at(-1) ?? '')).toEqual(['d'])
  expect(parse(indexBody({ manifests: [] }), ociIndex).children).toEqual([])
})

test('the artifact type is that of the manifest, or the media type of the config of an image', () => {
  expect(parse(imageBody({ artifactType: 'a/b' }), ociManifest).artifactType).toBe('a/b')
  for (const body of [imageBody(), imageBody({ artifactType: '' }), imageBody({ artifactType: null })]) {
    expect(parse(body, ociManifest).artifactType).toBe('application/x')
  }
  expect(parse(indexBody({ artifactType: 'a/b' }), ociIndex).artifactType).toBe('a/b')
  expect(parse(indexBody(), ociIndex).artifactType).toBeUndefined()
})

test('null, as encoders of Go write it, means the same as nothing, but is no config and no descriptor', () => {
  const nulls = ['mediaType', 'subject', 'annotations', 'artifactType', 'manifests', 'layers'].map((key) => [key, null])
  const { subject, annotations, blobs } = parse(imageBody(Object.fromEntries(nulls)), ociManifest)
  expect([subject, annotations, blobs.length]).toEqual([undefined, undefined, 1])
  expect(parse(indexBody({ manifests: null }), ociIndex).children).toEqual([])
  for (const body of [imageBody({ config: null }), imageBody({ layers: [null] })]) {
    expect(refusalOf(() => parse(body, ociManifest))).toBe('manifest-invalid')
  }
})

test.each([
  [['https://example.com/layer'], true],
  [[], false],
  [null, false],
  [undefined, false],
  ['https://example.com/layer', false],
])('a layer with urls %p is foreign: %p', (urls, isForeign) => {
  expect(parse(imageBody({ layers: [descriptor('a', { urls })] }), ociManifest).blobs[1]?.isForeign).toBe(isForeign)
})

describe('a subject', () => {
  test('is given by its digest, of whatever algorithm', () => {
    const digest = `blake3:${'0'.repeat(64)}`
    expect(String(parse(indexBody({ subject: descriptor('e') }), ociIndex).subject)).toBe(`sha256:${'e'.repeat(64)}`)
    expect(String(parse(imageBody({ subject: descriptor('e', { digest }) }), ociManifest).subject)).toBe(digest)
  })

  test.each([['sha256:abc'], [{}], [[]], [5], [true], [descriptor('e', { digest: 'sha256:abc' })]])(
    'is not %j',
    (subject) => {
      expect(refusalOf(() => parse(imageBody({ subject }), ociManifest))).toBe('manifest-invalid')
    },
  )
})

describe('a descriptor', () => {
  const wrong: readonly (readonly [string, Body])[] = [
    ['no digest', { digest: undefined }],
    ['a digest that is none', { digest: 'sha256:abc' }],
    ['a digest in upper case', { digest: `sha256:${'A'.repeat(64)}` }],
    ['a digest that is a list', { digest: [`sha256:${'0'.repeat(64)}`] }],
    ['no size', { size: undefined }],
    ['a size below nothing', { size: -1 }],
    ['half a byte', { size: 0.5 }],
    ['a size beyond counting', { size: 2 ** 53 }],
    ['a size as text', { size: '1' }],
    ['no media type', { mediaType: undefined }],
    ['an empty media type', { mediaType: '' }],
    ['a media type that is a number', { mediaType: 5 }],
  ]
  test.each(wrong)('with %s is refused wherever it stands', (_what, rest) => {
    const bad = descriptor('a', rest)
    const bodies = [imageBody({ config: bad }), imageBody({ layers: [bad] }), imageBody({ subject: bad })]
    for (const body of bodies) expect(refusalOf(() => parse(body, ociManifest))).toBe('manifest-invalid')
    expect(refusalOf(() => parse(indexBody({ manifests: [bad] }), ociIndex))).toBe('manifest-invalid')
  })

  test('may be empty content, and the largest that can be counted', () => {
    for (const size of [0, Number.MAX_SAFE_INTEGER]) {
      expect(parse(imageBody({ config: descriptor('c', { size }) }), ociManifest).blobs[0]?.sizeBytes).toBe(size)
    }
  })
})

describe('annotations', () => {
  test('are texts by name', () => {
    expect(parse(imageBody({ annotations: { a: 'b' } }), ociManifest).annotations).toEqual({ a: 'b' })
    for (const annotations of [{ a: 1 }, { a: null }, { a: {} }, [], 'a', 5]) {
      expect(refusalOf(() => parse(imageBody({ annotations }), ociManifest))).toBe('manifest-invalid')
    }
  })

  test.each([
    [
      'more in number than the limit',
      { a: '', b: '', c: '', d: '' },
      'the manifest has 4 annotations; at most 3 are accepted',
    ],
    [
      'with more bytes than the limit',
      { a: 'éééé' },
      'the annotations have 16 bytes; at most 15 are accepted in a manifest with a subject',
    ],
  ])('%s are refused with the numbers', (_, annotations, reason) => {
    const own = { annotationsMax: 3, annotationBytesMax: 15 }
    const body = imageBody({ annotations, subject: descriptor() })
    expect(catchRefusal(() => parse(body, ociManifest, own))?.details).toEqual([{ reason }])
  })

  test('have no limit in bytes without a subject: no list repeats them', () => {
    const body = imageBody({ annotations: { a: 'x'.repeat(100) } })
    expect(refusalOf(() => parse(body, ociManifest, { annotationBytesMax: 15 }))).toBeUndefined()
  })

  test('cannot reach the prototype of anything', () => {
    const text = JSON.stringify(imageBody()).replace(/^\{/, '{"annotations":{"__proto__":"a"},')
    expect(Object.getPrototypeOf(parse(text, ociManifest).annotations ?? {})).toBe(Object.prototype)
    expect(Object.getOwnPropertyNames({})).toEqual([])
  })
})

describe('a body', () => {
  test('that is no JSON object, or has another schema version, is refused', () => {
    const texts = [
      '',
      ' ',
      '[]',
      'null',
      '5',
      '"a"',
      '{',
      '{"schemaVersion":2',
      '{}{}',
      `\ufeff${JSON.stringify(imageBody())}`,
    ]
    const others = [undefined, null, 1, 3, '2', [2]].map((schemaVersion) => imageBody({ schemaVersion }))
    for (const body of [...texts, ...others]) {
      expect([body, refusalOf(() => parse(body, ociManifest))]).toEqual([body, 'manifest-invalid'])
    }
  })

  test('that is not UTF-8 is refused', () => {
    const bytes = toBytes(imageBody({ annotations: { a: 'é' } }))
    const broken = bytes.map((byte) => (byte === 0xc3 ? 0xff : byte))
    expect(refusalOf(() => parseManifest(bytes, ociManifest, limits))).toBeUndefined()
    expect(refusalOf(() => parseManifest(broken, ociManifest, limits))).toBe('manifest-invalid')
    expect(refusalOf(() => parseManifest(new Uint8Array([0xff, 0xfe, 0x7b, 0]), ociManifest, limits))).toBe(
      'manifest-invalid',
    )
  })

  test('deeper than the limit is refused, at the limit it is not', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 0 : [nested(depth - 1)])
    expect(refusalOf(() => parse(imageBody({ x: nested(7) }), ociManifest, { jsonDepthMax: 8 }))).toBeUndefined()
    expect(refusalOf(() => parse(imageBody({ x: nested(8) }), ociManifest, { jsonDepthMax: 8 }))).toBe(
      'manifest-invalid',
    )
  })

  test('with more entries than the limit is refused, with as many it is not', () => {
    const entries = (count: number) => Array.from({ length: count }, () => descriptor())
    const own = { descriptorsMax: 3 }
    expect(refusalOf(() => parse(imageBody({ layers: entries(3) }), ociManifest, own))).toBeUndefined()
    expect(refusalOf(() => parse(imageBody({ layers: entries(4) }), ociManifest, own))).toBe('manifest-invalid')
    expect(refusalOf(() => parse(indexBody({ manifests: entries(4) }), ociIndex, own))).toBe('manifest-invalid')
  })

  test.each([
    imageBody({ layers: {} }),
    imageBody({ layers: 'a' }),
    imageBody({ config: [] }),
    imageBody({ artifactType: 5 }),
    imageBody({ artifactType: 'a\0b' }),
    imageBody({ config: { ...descriptor(), mediaType: 'a\0b' } }),
    imageBody({ artifactType: 'a'.repeat(1_025) }),
  ])('with a field of the wrong kind is refused (%#)', (body) => {
    expect(refusalOf(() => parse(body, ociManifest))).toBe('manifest-invalid')
  })

  test('is refused with a reason that a person can use', () => {
    const reason = catchRefusal(() => parse(imageBody({ layers: [descriptor(), {}] }), ociManifest))?.details[0]?.[
      'reason'
    ]
    expect(reason).toBe('layers[1].digest is not a digest')
  })
})
