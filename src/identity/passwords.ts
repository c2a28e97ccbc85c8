import { Slots } from '../lib/slots.ts'
import { RegistryRefusal } from '../oci/errors.ts'

/** For an unknown user, the password is compared with this hash, so that it takes as long as a wrong password. */
const zeros = 'A'.repeat(43)
export const unknownUserHash = `$argon2id$v=19$m=19456,t=2,p=1$${zeros}$${zeros}`

const cost = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

export const passwordLengthMin = 12

// Argon2 reads the whole password, so its length is limited.
export const passwordLengthMax = 1_024

/** Each check costs 19 MiB and a core for a moment. Anonymous callers must not be able to use the whole machine. */
const atOnceMax = 2
const waitingMax = 64
let comparisons = new Slots(atOnceMax, waitingMax)

/** Leaves this process its share of the checks of a server with several processes, and at least one at a time. */
export function shareChecks(processes: number): void {
  comparisons = new Slots(Math.max(1, Math.floor(atOnceMax / processes)), Math.floor(waitingMax / processes))
}

export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(password, cost)
}

/** Rejects with `NoSlot` if too many checks wait. */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  if (password === '' || password.length > passwordLengthMax) return false
  const matches = await comparisons.run(() => Bun.password.verify(password, hash ?? unknownUserHash))
  return matches && hash !== undefined
}

export function parsePassword(given: string): string {
  if (given.length >= passwordLengthMin && given.length <= passwordLengthMax) return given
  throw new RegistryRefusal('identity-invalid', {
    field: 'password',
    reason: `must be ${passwordLengthMin} to ${passwordLengthMax} characters`,
  })
}
