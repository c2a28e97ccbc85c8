// The remote identity with usual settings, over whatever service a test brings.
import { RemoteIdentity, type RemoteIdentityOptions } from '../../../src/adapters/identity-remote/remote-identity.ts'
import { defaultRoles, rightsOf } from '../../../src/identity/rights.ts'
import type { Credential } from '../../../src/ports/identity.ts'

export const noon = Date.UTC(2030, 0, 1, 12)

export const aliceSaid = { roles: ['writer'], user: 'alice', account: 'acme' }

export function apiKey(secret: string): Credential {
  return { kind: 'api-key', secret }
}

export function bearer(secret: string): Credential {
  return { kind: 'bearer', secret }
}

/** Time stands still unless a clock is given. */
export function openRemote(url: string, more: Partial<RemoteIdentityOptions> = {}): RemoteIdentity {
  return new RemoteIdentity({
    url,
    grantsFor: (roles) => [{ rights: rightsOf(roles, defaultRoles) }],
    clock: { now: () => noon },
    timeoutMs: 2_000,
    callsMax: 64,
    queueMax: 256,
    accountFields: ['scope', 'account'],
    ...more,
  })
}
