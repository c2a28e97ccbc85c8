import { unlimitedRightsOf } from '../../identity/rights.ts'
import { checkMayManage, getUser, type UserCheck, userUnknown } from '../../identity/users.ts'
import type { User } from '../../ports/users.ts'
import { type CallerExchange, getEmbeddedIdentity } from '../exchange.ts'

// Shared by the handlers of users and of API keys.

export const bodyBytesMax = 16_384

/** Answers about users and keys are for the caller alone: no cache may store them. */
export const noStore = { 'cache-control': 'no-store' }

/** A user of another account is refused as unknown. A user with more rights than the caller is refused, too. */
export function checkManagedBy({ app, principal }: Pick<CallerExchange, 'app' | 'principal'>): UserCheck {
  const { roles } = getEmbeddedIdentity(app)
  return (user) => {
    if (user.account !== principal.account) throw userUnknown(user.name)
    checkMayManage(unlimitedRightsOf(principal), user.roles, roles)
  }
}

/** The user in the path. Refused unless the caller may manage this user. */
export async function getManagedUser(exchange: CallerExchange): Promise<User> {
  const check = checkManagedBy(exchange)
  const user = await getUser(exchange.app.metadata, exchange.path['user'] ?? '', exchange.principal.account)
  check(user)
  return user
}
