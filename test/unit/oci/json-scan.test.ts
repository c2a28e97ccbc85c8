import { describe, expect, test } from 'bun:test'
import { findJsonFault } from '../../../src/oci/json-scan.ts'

const faultIn = (text: string, depthMax: number) => findJsonFault(text, depthMax)?.kind

const depthMax = 4

describe('a look at a JSON text', () => {
  test.each([
    '{}',
    '[]',
    '5',
    '"a"',
    ' { "a" : 1 , "b" : { "a" : 2 } } ',
    '{"a":"b","b":"a","c":["a","a"]}',
    '[{"a":1},{"a":1},{"a":{"a":1}}]',
    '{"a":"{\\"a\\":1,\\"a\\":2}"}',
    '{"a\\"":1,"a":2}',
    '{"a":"\\\\","b":1}',
    '{"":1," ":2}',
    '{"a":[[["deep enough"]]]}',
    '{"__proto__":1,"constructor":2,"toString":3}',
  ])('finds no fault in %p', (text) => {
    expect(faultIn(text, depthMax)).toBeUndefined()
  })

  test.each([
    ['twice in one object', '{"a":1,"a":2}'],
    ['twice with space between', '{ "a" :1,\n\t"a"\r\n:2}'],
    ['twice, the second escaped', '{"mediaType":1,"m\\u0065diaType":2}'],
    ['twice, deeper', '[{"x":{"a":1,"b":{},"a":2}}]'],
    ['after a nested object with the same key', '{"a":{"a":1},"a":2}'],
    ['in another case', '{"mediaType":1,"MediaType":2}'],
    ['in another case, escaped', '{"mediaType":1,"\\u004dEDIATYPE":2}'],
    ['with the long s, which Go folds to s', '{"layers":1,"layer\u017f":2}'],
    ['with the long s, escaped', '{"layers":1,"layer\\u017f":2}'],
    ['with the sign of Kelvin, which Go folds to k', '{"k":1,"\u212a":2}'],
    ['twice, empty', '{"":1,"":2}'],
    ['that names the prototype', '{"__proto__":1,"__proto__":2}'],
  ])('finds a key %s', (_what, text) => {
    expect(faultIn(text, depthMax)).toBe('duplicate key')
  })

  test.each([
    '[[[[[]]]]]',
    '{"a":{"a":{"a":{"a":{}}}}}',
    '[{"a":[{"b":[]}]}]',
    '['.repeat(100_000),
    '{"a":'.repeat(100_000),
  ])('finds what lies too deep (%#)', (text) => {
    expect(faultIn(text, depthMax)).toBe('too deep')
  })

  test('allows exactly the depth that it was given', () => {
    for (const depth of [1, 8, 32, 1_000]) {
      const nested = '['.repeat(depth) + ']'.repeat(depth)
      expect(faultIn(nested, depth)).toBeUndefined()
      expect(faultIn(nested, depth - 1)).toBe('too deep')
    }
  })

  test('brackets inside strings do not count', () => {
    expect(faultIn(`{"a":"${'[{'.repeat(100)}"}`, depthMax)).toBeUndefined()
  })

  test.each(['"', '{"a', '{"a\\"', '}', '{"\\x":1}', '{"\\u12":1}'])('sees that %p is no JSON', (text) => {
    expect(faultIn(text, depthMax)).toBe('not JSON')
  })
})
