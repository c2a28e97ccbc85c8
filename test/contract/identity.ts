// The contract of every identity adapter (src/ports/identity.ts).
import { describe, expect, test } from 'bun:test'
import type { Credential, Identity } from '../../src/ports/identity.ts'

/** Credentials as the service behind the identity knows them. */
export interface OpenedIdentity {
  readonly identity: Identity
  /** All of one user: `alice` of the account `acme`, with the one role `writer`. */
  readonly good: Readonly<Record<string, Credential>>
  /** Each with a name that says what is wrong with it. */
  readonly bad: Readonly<Record<string, Credential>>
}

export function identityContract(name: string, open: () => Promise<OpenedIdentity>): void {
  describe(`identity, ${name}`, () => {
    test('identifies the caller of each good credential', async () => {
      const { identity, good } = await open()

      for (const [what, credential] of Object.entries(good)) {
        const principal = await identity.authenticate(credential)
        expect({ what, principal }).toMatchObject({
          what,
          principal: {
            account: 'acme',
            subject: 'alice',
            roles: ['writer'],
            grants: [{ rights: new Set(['pull', 'push', 'delete']) }],
          },
        })
        // Nothing limits them to some repositories.
        expect(principal?.grants.flatMap((grant) => grant.repositories ?? [])).toEqual([])
      }
    })

    test('refuses each bad credential', async () => {
      const { identity, bad } = await open()

      for (const [what, credential] of Object.entries(bad)) {
        expect({ what, principal: await identity.authenticate(credential) }).toEqual({ what, principal: undefined })
      }
    })

    test('gives no secret away in what it tells', async () => {
      const { identity, good } = await open()

      for (const credential of Object.values(good)) {
        const told = Bun.inspect(await identity.authenticate(credential), { depth: 9 })
        expect(told).not.toContain(credential.secret)
        expect(told).not.toContain(credential.secret.slice(0, 16))
      }
    })

    test('tells credentials apart by their fingerprints, the same each time', async () => {
      const { identity, good } = await open()
      const fingerprints = async () =>
        Promise.all(Object.values(good).map(async (one) => (await identity.authenticate(one))?.fingerprint))

      const first = await fingerprints()

      expect(new Set(first).size).toBe(Object.keys(good).length)
      expect(await fingerprints()).toEqual(first)
    })
  })
}
