import { Slots } from '../lib/slots.ts'

/** Argon2id. A wrong password and an unknown user must cost the same, so there is always something to compare with. */
const ofNothing = 'A'.repeat(43)
export const nobodysHash = `$argon2id$v=19$m=19456,t=2,p=1$${ofNothing}$${ofNothing}`

const cost = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

export const passwordLengthMin = 12

// Argon2 reads all of it; nobody's password is longer.
export const passwordLengthMax = 1_024

/** Each costs 19 MiB and a core for a moment: strangers who try passwords must not get all of the machine. */
const comparisons = new Slots(2, 64)

export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(password, cost)
}

/** Rejects with `NoSlot` when too many wait already. */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  if (password === '' || password.length > passwordLengthMax) return false
  const matches = await comparisons.run(() => Bun.password.verify(password, hash ?? nobodysHash))
  return matches && hash !== undefined
}
