import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConfigError, readConfig } from '../../src/app/config.ts'
import { roleMap, textList } from '../../src/app/setting-kinds.ts'
import { settingsTable } from '../../src/app/settings.ts'
import { allRights, defaultRoles } from '../../src/identity/rights.ts'
import { formatBytes, parseByteCount, parseDuration } from '../../src/lib/quantities.ts'
import { anyText, check, piecesOf } from '../support/basics/fuzzing.ts'

const rows = Object.values(settingsTable)
const nearSetting = fc.oneof(
  anyText,
  piecesOf([
    '1',
    '0',
    '30',
    's',
    'm',
    'MiB',
    'KiB',
    ' ',
    '-',
    '.',
    'e',
    'true',
    ',',
    '=',
    '+',
    'pull',
    'https://',
    'a',
  ]),
)

describe('a quantity', () => {
  const durations = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  const bytes = { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 }

  test('of any number and unit is their product', () => {
    const row = (units: object) => fc.constantFrom(...Object.entries(units))
    check(fc.nat(100_000), row(durations), row(bytes), (number, [time, milliseconds], [amount, factor]) => {
      expect(parseDuration(`${number}${time}`)).toBe(number * milliseconds)
      expect(parseByteCount(`${number} ${amount}`)).toBe(number * factor)
    })
  })

  test('of any text is a whole number that can be counted, or nothing', () => {
    check(nearSetting, (text) => {
      for (const value of [parseDuration(text), parseByteCount(text)]) {
        if (value !== undefined) expect(Number.isSafeInteger(value) && value >= 0).toBe(true)
      }
    })
  })

  test('is shown in a unit of which there is at least one', () => {
    check(fc.nat({ max: Number.MAX_SAFE_INTEGER }), (number) => {
      expect(formatBytes(number)).toMatch(/^(?:[1-9]\d*\.\d|\d+) (?:B|KiB|MiB|GiB|TiB)$/)
    })
  })
})

describe('every setting', () => {
  test('takes or refuses any text or value of a file, and what it takes it takes again as it shows it', () => {
    check(fc.constantFrom(...rows), fc.oneof(nearSetting, fc.jsonValue()), ({ kind }, given) => {
      const parsed = kind.parse(given)
      if (parsed === undefined || typeof given !== 'string') return
      const { value } = parsed
      if (typeof value === 'number') expect(Number.isSafeInteger(value) && value >= 0).toBe(true)
      else if (typeof value !== 'object') expect(kind.parse(String(value))?.value).toEqual(value as never)
    })
  })

  test('in the environment is read, or told as a fault that shows no secret', () => {
    check(fc.constantFrom(...rows), fc.string({ minLength: 3, maxLength: 11 }), ({ variable, kind }, text) => {
      try {
        readConfig(undefined, { [variable]: text })
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError)
        const { problems } = error as ConfigError
        expect(problems.length).toBe(1)
        if (kind.isSecret) expect(problems[0]).toBe(`${variable}: the value (not shown) must be ${kind.allowed}`)
      }
    })
  })
})

describe('lists and maps', () => {
  const word = fc.stringMatching(/^[a-z][a-z0-9/.-]{0,10}$/)

  test('are the same from the environment as from the file', () => {
    check(fc.array(word, { maxLength: 5 }), (items) => {
      expect(textList().parse(items.join(', '))?.value).toEqual(textList().parse(items)?.value as never)
    })
    const roles = fc.dictionary(word, fc.uniqueArray(fc.constantFrom(...allRights)), { minKeys: 1, maxKeys: 4 })
    check(roles, (map) => {
      const text = Object.entries(map).map(([role, rights]) => `${role}=${rights.join('+')}`)
      const kind = roleMap(defaultRoles, allRights)
      expect(kind.parse(text.join(','))?.value).toEqual(kind.parse(map)?.value as never)
    })
  })

  test('give no right that is not one', () => {
    check(nearSetting, (text) => {
      const rights = [...(roleMap(defaultRoles, allRights).parse(text)?.value.values() ?? [])].flat()
      expect(rights.filter((right) => !allRights.includes(right))).toEqual([])
    })
  })
})
