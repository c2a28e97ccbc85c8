/** Argon2id. A wrong password and an unknown user must cost the same, so there is always something to compare with. */
const nobodysHash = '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'

const cost = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(password, cost)
}

export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const matches = await Bun.password.verify(password, hash ?? nobodysHash)
  return matches && hash !== undefined
}
