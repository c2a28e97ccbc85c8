// Preloaded by scripts/test.mjs into the tests and into the servers that they start (BUN_OPTIONS). The comparison of a
// password costs next to nothing here. A test about this cost sets PASSWORD_COST=full.
import { unknownUserHash } from '../../../src/identity/passwords.ts'

const { hash, verify } = Bun.password
const isCheap = () => process.env['PASSWORD_COST'] !== 'full'

Bun.password.hash = (password, cost) =>
  hash(password, isCheap() ? { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 } : cost)

Bun.password.verify = (password, encoded, algorithm) => {
  const isUnknownUser = isCheap() && encoded === unknownUserHash
  return verify(password, isUnknownUser ? unknownUserHash.replace('m=19456,t=2', 'm=8,t=1') : encoded, algorithm)
}
