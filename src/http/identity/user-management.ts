import { unlimitedRightsOf } from '../../identity/rights.ts'
import { checkMayManage, getUser, type UserCheck, userUnknown } from '../../identity/users.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import type { User } from '../../ports/users.ts'
import type { CallerExchange, EmbeddedIdentityService } from '../exchange.ts'

// Shared by the handlers of users and of API keys.

export const bodyBytesMax = 16_384

/** Answers about users and keys are for the caller alone: no cache may store them. */
export const noStore = { 'cache-control': 'no-store' }

/** Only the embedded identity service has users and keys. With another identity service, these paths are unknown. */
export function embeddedOf({ app }: Pick<CallerExchange, 'app'>): EmbeddedIdentityService {
  if (app.embedded === undefined) throw new RegistryRefusal('route-unknown')
  return app.embedded
}

/** A user of another account is refused as unknown. A user with more rights than the caller is refused, too. */
export function checkManagedBy({ app, principal }: Pick<CallerExchange, 'app' | 'principal'>): UserCheck {
  const { roles } = embeddedOf({ app })
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
