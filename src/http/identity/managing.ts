import { unlimitedRightsOf } from '../../identity/rights.ts'
import { checkMayManage, getUser, type UserCheck, userUnknown } from '../../identity/users.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import type { User } from '../../ports/users.ts'
import type { CallerExchange, EmbeddedIdentityService } from '../exchange.ts'

// What the handlers of users and of keys have in common.

export const bodyBytesMax = 16_384

/** Users and keys are nobody's business but the caller's: no cache may keep them. */
export const forNobodyElse = { 'cache-control': 'no-store' }

/** Users exist where the identity service is ours; elsewhere nothing is at these addresses. */
export function embeddedOf({ app }: Pick<CallerExchange, 'app'>): EmbeddedIdentityService {
  if (app.embedded === undefined) throw new RegistryRefusal('route-unknown')
  return app.embedded
}

/** Refuses users of other accounts as if there were none, and those who have more rights than the caller. */
export function managedBy({ app, principal }: Pick<CallerExchange, 'app' | 'principal'>): UserCheck {
  const { roles } = embeddedOf({ app })
  return (user) => {
    if (user.account !== principal.account) throw userUnknown(user.name)
    checkMayManage(unlimitedRightsOf(principal), user.roles, roles)
  }
}

/** The user that the path names, of the caller's account, whom the caller may manage. */
export async function findManaged(exchange: CallerExchange): Promise<User> {
  const check = managedBy(exchange)
  const user = await getUser(exchange.app.metadata, exchange.path['user'] ?? '', exchange.principal.account)
  check(user)
  return user
}
