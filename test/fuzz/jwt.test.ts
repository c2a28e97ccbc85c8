import { beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { KeyRing } from '../../src/identity/key-ring.ts'
import { isOver, Tokens } from '../../src/identity/tokens.ts'
import { hasJwtShape, readJwtType, readUnprovedClaims } from '../../src/lib/jwt.ts'
import { anyText, check, piecesOf, seed, spoiled } from '../support/basics/fuzzing.ts'
import { MemorySigningKeys, MovingClock } from '../support/identity/memory-signing-keys.ts'
import { user } from '../support/identity/memory-users.ts'

const clock = new MovingClock()
let ring: KeyRing
let tokens: Tokens
let good: string

beforeAll(async () => {
  ring = await KeyRing.open(new MemorySigningKeys(), clock, 0)
  tokens = new Tokens(ring, clock)
  good = await tokens.issue(user())
})

/** As `check`, for a property that has to be waited for; each run costs a signature. */
async function checkSlowly<T>(values: fc.Arbitrary<T>, predicate: (value: T) => Promise<void>): Promise<void> {
  await fc.assert(fc.asyncProperty(values, predicate), { seed, numRuns: 500 })
}

const encode = (text: string) => Buffer.from(text).toString('base64url')
const letters = fc.constantFrom(...'AZaz09-_.=+/ \n"{}')
const jsonTexts = fc.oneof(fc.json({ maxDepth: 2 }), anyText)

/** Header fields as attackers write them, some twice, in any order. */
const headerText = fc
  .array(
    fc.constantFrom(
      '"alg":"EdDSA"',
      '"alg":"none"',
      '"alg":"HS256"',
      '"alg":["EdDSA"]',
      '"typ":"JWT"',
      '"typ":"berth-scoped+jwt"',
      '"kid":"KID"',
      '"kid":"../KID"',
      '"kid":null',
      '"crit":["exp"]',
      '"crit":[]',
      '"b64":false',
      '"jwk":{}',
      '"jku":"http://127.0.0.1:1/"',
      '"__proto__":{"alg":"EdDSA"}',
    ),
    { maxLength: 6 },
  )
  .map((fields) => `{${fields.join(',')}}`)

describe('a token', () => {
  test('that was spoiled in one letter is refused, or says exactly what it said', async () => {
    const said = await tokens.verify(good)
    if (said === undefined) throw new Error('the token was not good to begin with')

    await checkSlowly(
      spoiled(
        fc.constant('').map(() => good),
        letters,
      ),
      async (token) => {
        const verified = await tokens.verify(token)
        // The last letter of a signature has bits that count for nothing.
        if (verified !== undefined) expect([verified, token.length]).toEqual([said, good.length])
        if (token.slice(0, -1) !== good.slice(0, -1)) expect(verified).toBeUndefined()
      },
    )
  })

  test('whose header was replaced is refused, unless it is the very same', async () => {
    const [header = '', payload = '', signature = ''] = good.split('.')

    await checkSlowly(fc.oneof(headerText, jsonTexts), async (text) => {
      const forged = encode(text.replaceAll('KID', ring.signing().kid))
      if (forged === header) return
      expect(await tokens.verify(`${forged}.${payload}.${signature}`)).toBeUndefined()
      expect(await tokens.verify(`${forged}.${payload}.`)).toBeUndefined()
    })
  })

  test('whose claims were replaced is refused', async () => {
    const [header = '', , signature = ''] = good.split('.')

    await checkSlowly(jsonTexts, async (text) => {
      expect(await tokens.verify(`${header}.${encode(text)}.${signature}`)).toBeUndefined()
    })
  })

  test('of pieces of good ones is refused', async () => {
    const parts = [...good.split('.'), '.', '.', '=', 'e30', '']

    await checkSlowly(piecesOf(parts, 7), async (token) => {
      if (token !== good) expect(await tokens.verify(token)).toBeUndefined()
    })
  })

  test('as it came is good (the control of all of these)', async () => {
    expect((await tokens.verify(good))?.userName).toBe('ann')
  })
})

describe('whatever is taken for a token', () => {
  const nearTokens = fc.oneof(
    anyText,
    piecesOf(['.', '..', 'e30', 'eyJ', 'bnVsbA', 'W10', '{}', '=', 'A']),
    fc.tuple(jsonTexts, jsonTexts, anyText).map(([one, two, three]) => `${encode(one)}.${encode(two)}.${three}`),
  )

  test('tells of itself or does not, and never throws', () => {
    check(nearTokens, (text) => {
      const claims = readUnprovedClaims(text)
      readJwtType(text)
      expect(typeof isOver(text, clock.at)).toBe('boolean')
      if (claims !== undefined)
        expect([hasJwtShape(text), typeof claims, Array.isArray(claims)]).toEqual([true, 'object', false])
    })
  })

  test('is checked without an exception, and is rejected', async () => {
    await checkSlowly(nearTokens, async (text) => {
      expect(await tokens.verify(text)).toBeUndefined()
    })
  })
})
