import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CachedIdentity, type CachePolicy } from '../../../src/identity/cached-identity.ts'
import { IdentityByCredential } from '../../../src/identity/identity-by-credential.ts'
import type { Credential } from '../../../src/ports/identity.ts'
import { seed } from '../../support/basics/fuzzing.ts'
import { CountedIdentity, down, principal, settle } from '../../support/identity/remembering.ts'

/** Times are multiples of 5 s, so no age falls into the tenth by which the times of two credentials differ. */
const policy: CachePolicy = { goodMs: 50_000, refreshAfterMs: 35_000, badMs: 10_000, outageMs: 100_000 }
const credentials: readonly Credential[] = [
  { kind: 'api-key', secret: 'k' },
  { kind: 'bearer', secret: 'k' },
  { kind: 'login', userName: 'k', secret: 'k' },
]

class Trial {
  now = 1_000_000
  readonly service = new CountedIdentity()
  readonly identity: IdentityByCredential
  parsed = 0

  constructor() {
    const clock = { now: () => this.now }
    const [scoped, other] = [new CountedIdentity(), this.service].map(
      (inner) => new CachedIdentity(inner, clock, policy),
    )
    if (scoped === undefined || other === undefined) throw new Error('two identities')
    this.identity = new IdentityByCredential(scoped, other, true, clock)
  }

  /** The header of a credential says its kind and its secret. */
  findByHeader(credential: Credential): string | undefined {
    const parse = () => {
      this.parsed += 1
      return credential
    }
    return this.identity.findByHeader(JSON.stringify(credential), parse)?.subject
  }
}

const steps = fc.array(
  fc.record({
    waitMs: fc.constantFrom(0, 0, 5_000, 10_000, 35_000),
    act: fc.constantFrom('authenticate', 'authenticate', 'find', 'find', 'find', 'find', 'clear'),
    credential: fc.constantFrom(...credentials),
    answer: fc.constantFrom('one', 'another', 'short life', 'refused', 'down'),
  }),
  { minLength: 20, maxLength: 40 },
)

describe('a header that was seen lately', () => {
  test('gives at any time the principal that its credential gives', async () => {
    let found = 0
    let unparsed = 0
    const walk = fc.asyncProperty(steps, async (all) => {
      const [byHeader, byCredential] = [new Trial(), new Trial()]
      for (const { waitMs, act, credential, answer } of all) {
        for (const trial of [byHeader, byCredential]) {
          trial.now += waitMs
          trial.service.answer =
            answer === 'down'
              ? down
              : answer === 'refused'
                ? undefined
                : principal(answer, answer === 'short life' ? trial.now + 20_000 : undefined)
          if (act === 'clear') trial.identity.clear()
          if (act === 'authenticate') await trial.identity.authenticate(credential).catch(() => undefined)
          // A check in the background has ended before the next step, in both.
          await settle()
        }
        if (act !== 'find') continue
        const before = byHeader.parsed
        const subject = byHeader.findByHeader(credential)
        expect(subject).toBe(byCredential.identity.findCached(credential)?.subject)
        if (subject !== undefined) found += 1
        if (byHeader.parsed === before) unparsed += 1
        await settle()
      }
    })
    await fc.assert(walk, { seed, numRuns: 300 })
    // The walks have reached the case that they are about.
    expect(Math.min(found, unparsed)).toBeGreaterThan(50)
  })
})
