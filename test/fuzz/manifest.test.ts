import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { RegistryRefusal } from '../../src/oci/errors.ts'
import type { Manifest } from '../../src/oci/manifest.ts'
import { dockerManifest, dockerManifestList, ociIndex, ociManifest } from '../../src/oci/media-types.ts'
import { anyText, check } from '../support/basics/fuzzing.ts'
import { descriptor, parse } from '../support/clients/manifest-bodies.ts'
import { goField, readJson } from './go-json.ts'

const mediaTypes = [dockerManifest, ociManifest, ociIndex, dockerManifestList]

/** A key written in one of the ways that some reader takes for it. */
function spellings(name: string): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant(JSON.stringify(name)) },
    { weight: 1, arbitrary: fc.mixedCase(fc.constant(name)).map((text) => JSON.stringify(text)) },
    { weight: 1, arbitrary: fc.nat().map((at) => escapeAt(name, at % name.length)) },
    { weight: 1, arbitrary: fc.constant(JSON.stringify(name.replace('s', 'ſ'))) },
  )
}

function escapeAt(text: string, at: number): string {
  const code = text.charCodeAt(at).toString(16).padStart(4, '0')
  return `"${text.slice(0, at)}\\u${code}${text.slice(at + 1)}"`
}

const values = fc.constantFrom<unknown>(
  null,
  [],
  [descriptor('a')],
  [descriptor('a'), descriptor('b')],
  descriptor('c'),
  {},
  '',
  'a/b',
  2,
  { a: 'b' },
  ...mediaTypes,
)

const goodValues: Readonly<Record<string, readonly unknown[]>> = {
  mediaType: [null, ...mediaTypes],
  config: [null, descriptor('c')],
  layers: [null, [], [descriptor('a')]],
  manifests: [null, [], [descriptor('d')]],
  subject: [null, descriptor('e')],
  artifactType: [null, '', 'a/b'],
  annotations: [null, {}, { a: 'b' }],
  fsLayers: [null],
}
const fields = [...Object.keys(goodValues), 'other']

/** One member of a manifest: mostly as it should be. */
const member = fc.constantFrom(...fields).chain((name) => {
  const value = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...(goodValues[name] ?? [1])) },
    { weight: 1, arbitrary: values },
  )
  return fc.tuple(spellings(name), value).map(([key, one]) => `${key}:${JSON.stringify(one)}`)
})

const bases = fc.constantFrom(
  ['"schemaVersion":2', `"config":${JSON.stringify(descriptor('c'))}`, '"layers":[]'],
  ['"schemaVersion":2', '"manifests":[]'],
  ['"schemaVersion":2'],
)

const documents = fc
  .tuple(bases, fc.array(member, { maxLength: 3 }), fc.boolean())
  .map(([base, more, isLast]) => `{${(isLast ? [...base, ...more] : [...more, ...base]).join(',')}}`)

/** The manifest, or undefined when it is refused; anything but a refusal is a mistake of ours. */
function accepted(text: string, mediaType: string): Manifest | undefined {
  try {
    return parse(text, mediaType)
  } catch (error) {
    if (error instanceof RegistryRefusal) return undefined
    throw error
  }
}

describe('a body that we accept', () => {
  test('says the same to a reader written in Go: which type it is and what it is made of', () => {
    let taken = 0
    check(documents, fc.constantFrom(...mediaTypes), (text, mediaType) => {
      const manifest = accepted(text, mediaType)
      if (manifest === undefined) return
      taken += 1

      const go = readJson(text)
      expect(goField(go, 'mediaType') ?? mediaType).toBe(mediaType)
      const has = (name: string) => goField(go, name) !== undefined
      expect({ config: has('config'), manifests: has('manifests') && manifest.shape === 'image' }).toEqual({
        config: manifest.shape === 'image',
        manifests: false,
      })
      if (manifest.shape === 'index') expect(has('layers')).toBe(false)
      expect(has('fsLayers')).toBe(false)
      expect(has('subject')).toBe(manifest.subject !== undefined)
      if (has('artifactType') && goField(go, 'artifactType') !== '') {
        expect(goField(go, 'artifactType')).toBe(manifest.artifactType as string)
      }
      const count = (name: string) => (goField(go, name) as readonly unknown[] | undefined)?.length ?? 0
      expect(manifest.shape === 'image' ? 1 + count('layers') : count('manifests')).toBe(
        manifest.blobs.length + manifest.children.length,
      )
    })
    expect(taken).toBeGreaterThan(20)
  })

  test('is not taken as two types: whatever is accepted as an image is refused as an index', () => {
    check(documents, (text) => {
      const shapes = new Set(
        mediaTypes.map((type) => accepted(text, type)?.shape).filter((shape) => shape !== undefined),
      )
      expect(shapes.size).toBeLessThan(2)
    })
  })
})

describe('whatever is sent', () => {
  test('is accepted or refused, and breaks nothing', () => {
    const json = fc.json({ maxDepth: 6 })
    check(fc.oneof(anyText, json), fc.constantFrom(...mediaTypes), (text, mediaType) => {
      expect(accepted(text, mediaType)).toBeUndefined()
    })
  })

  test('in place of any field is accepted or refused, and breaks nothing', () => {
    const base = { schemaVersion: 2, config: descriptor(), layers: [descriptor()] }
    check(fc.constantFrom(...fields, 'schemaVersion'), fc.jsonValue(), (name, value) => {
      accepted(JSON.stringify({ ...base, [name]: value }), ociManifest)
      accepted(JSON.stringify({ ...base, layers: [{ ...descriptor(), [name]: value }] }), ociManifest)
    })
  })
})
