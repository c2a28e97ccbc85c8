import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findJsonFault } from '../../src/oci/json-scan.ts'
import { anyText, check, piecesOf } from '../support/basics/fuzzing.ts'
import { readJson, type Value } from './go-json.ts'

const faultIn = (text: string, depthMax: number) => findJsonFault(text, depthMax)?.kind

const plenty = 1_000

/** JSON texts with space in odd places, as no encoder would write them. */
const texts = fc
  .tuple(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom('', ' ', '\n', '\t', '\r\n  '))
  .map(([value, space]) => JSON.stringify(value, undefined, space))

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function depthOf(value: Value): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner = 'members' in value ? value.members.map(([, one]) => one) : value
  return 1 + Math.max(0, ...inner.map(depthOf))
}

function hasRepeatedKey(value: Value): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (!('members' in value)) return value.some(hasRepeatedKey)
  const keys = value.members.map(([key]) => key.toLowerCase().replaceAll('ſ', 's'))
  return new Set(keys).size < keys.length || value.members.some(([, one]) => hasRepeatedKey(one))
}

describe('a text that is JSON', () => {
  test('has a fault exactly when a slow reader finds a repeated key', () => {
    check(texts, (text) => {
      expect(faultIn(text, plenty)).toBe(hasRepeatedKey(readJson(text)) ? 'duplicate key' : undefined)
    })
  })

  test('is too deep exactly when it is deeper than the limit', () => {
    check(texts, fc.integer({ min: 1, max: 6 }), (text, limit) => {
      const value = readJson(text)
      if (hasRepeatedKey(value)) return
      expect(faultIn(text, limit)).toBe(depthOf(value) > limit ? 'too deep' : undefined)
    })
  })

  test('is never called anything else', () => {
    const nearJson = piecesOf(
      ['{', '}', '[', ']', '"a"', '"A"', ':', ',', '1', ' ', '"\\""', '"\\\\"', 'null', '"{"'],
      16,
    )
    check(fc.oneof(texts, nearJson, anyText), (text) => {
      if (isJson(text)) expect(faultIn(text, plenty)).not.toBe('not JSON')
    })
  })
})

describe('a key that is planted a second time', () => {
  /** The letters of a key, each as it is, in another case, or as an escape. */
  const disguised = (key: string) =>
    fc.tuple(...[...key].map((letter) => fc.constantFrom(...disguisesOf(letter)))).map((letters) => letters.join(''))

  function disguisesOf(letter: string): string[] {
    const forms = [letter, letter.toUpperCase(), letter.toLowerCase(), ...(letter === 's' ? ['ſ'] : [])]
    const escaped = forms.map((form) => `\\u${form.charCodeAt(0).toString(16).padStart(4, '0')}`)
    return [...forms, ...escaped, ...escaped.map((form) => form.slice(0, 2) + form.slice(2).toUpperCase())]
  }

  const keys = fc.constantFrom('mediaType', 'layers', 'manifests', 'config', 'digest', 'size', 'k')
  const planted = keys.chain((key) => fc.tuple(fc.constant(key), disguised(key)))
  const wrap = fc.constantFrom<(text: string) => string>(
    (text) => text,
    (text) => `[1,${text}]`,
    (text) => `{"x":{"y":[${text}]}}`,
    (text) => `{"deep":[[{"a":${text},"b":2}]]}`,
  )

  test('is found however it is written and wherever it stands', () => {
    check(planted, wrap, fc.constantFrom('', ' ', '\r\n\t'), ([key, twin], around, space) => {
      const text = around(`{"${key}"${space}:{"${key}":1},"z":[],${space}"${twin}"${space}:2}`)
      expect(isJson(text)).toBe(true)
      expect(faultIn(text, plenty)).toBe('duplicate key')
    })
  })

  test('is not seen where it is a value, or in another object', () => {
    check(planted, ([key, twin]) => {
      expect(
        faultIn(`{"${key}":"${twin}","v":["${twin}","${key}",{"${twin}":1},{"${twin}":1}]}`, plenty),
      ).toBeUndefined()
    })
  })
})

describe('the largest texts that can be sent', () => {
  const size = 4 * 1024 * 1024
  // No clock here: what is quadratic would not come to an end within the time that a test has.
  test.each([
    ['brackets', '['.repeat(size), 'too deep'],
    ['braces', '{"a":'.repeat(size / 5), 'too deep'],
    ['empty objects', `[${'{},'.repeat(size / 3)}{}]`, undefined],
    ['quotes', '"'.repeat(size), undefined],
    ['backslashes', `"${'\\'.repeat(size)}`, 'not JSON'],
    ['one key, and space for ever', `{"a"${' '.repeat(size)}`, undefined],
    ['strings before space', `[${'"a"   ,'.repeat(size / 7)}1]`, undefined],
    ['many keys', `{${Array.from({ length: 300_000 }, (_, at) => `"k${at}":1`).join(',')}}`, undefined],
    [
      'many keys of one beginning',
      `{${Array.from({ length: 100_000 }, (_, at) => `"${'a'.repeat(30)}${at}":1`)}}`,
      undefined,
    ],
  ])('of %s come to an end', (_what, text, fault) => {
    expect(faultIn(text, 32)).toBe(fault as never)
  })
})
