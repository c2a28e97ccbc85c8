// An identity service for what stands before one: it counts its questions, and answers whatever it is set to.
import { CachedIdentity, type CachePolicy } from '../../../src/identity/cached-identity.ts'
import { Unavailable } from '../../../src/oci/errors.ts'
import type { Credential, Identity, Principal } from '../../../src/ports/identity.ts'

export const policy: CachePolicy = { goodMs: 60_000, refreshAfterMs: 45_000, badMs: 10_000, outageMs: 300_000 }

export const key: Credential = { kind: 'api-key', secret: 'k' }
export const down = new Unavailable('identity-service')

export class CountedIdentity implements Identity {
  asked = 0
  answer: Principal | undefined | Error = principal('first')
  #hold: Promise<void> | undefined

  async authenticate(): Promise<Principal | undefined> {
    this.asked += 1
    const { answer } = this
    await this.#hold
    if (answer instanceof Error) throw answer
    return answer
  }

  /** Answers to questions from now on wait; gives what lets them go. */
  holdAnswers(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#hold = promise
    return resolve
  }
}

/** An identity with a cache, the service behind it, and a clock that does not move. */
export class Memory {
  now = 1_000_000
  readonly service = new CountedIdentity()
  readonly identity: CachedIdentity

  constructor(more: Partial<CachePolicy> = {}) {
    this.identity = new CachedIdentity(this.service, { now: () => this.now }, { ...policy, ...more })
  }

  async subjectOf(credential: Credential = key): Promise<string | undefined> {
    return (await this.identity.authenticate(credential))?.subject
  }
}

export function principal(subject: string, expiresAt?: number): Principal {
  return { account: 'acme', subject, roles: [], grants: [], fingerprint: 'f', expiresAt }
}

export function numbered(index: number): Credential {
  return { kind: 'api-key', secret: `number ${index}` }
}

/** Lets what runs in the background come to its end. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}
