import { allRightsOf } from '../../identity/rights.ts'
import { formatTime } from '../../lib/quantities.ts'
import { Unavailable } from '../../oci/errors.ts'
import { type Answer, type CallerExchange, jsonAnswer } from '../exchange.ts'

/**
 * GET /api/2021-02-21/me - who the caller is. `roles` is the contract; the rest saves a second question, and tells another
 * Berth what a limited key is limited to.
 */
export async function getMe({ principal }: CallerExchange): Promise<Answer> {
  // Who asks may be another Berth, which would take an old answer for a new one.
  if (principal.isUnconfirmed) throw new Unavailable('the identity service')
  const { roles, userRoles, subject, account, grants, expiresAt } = principal
  const isLimited = grants.every((grant) => grant.repositories !== undefined)
  return jsonAnswer(
    200,
    {
      roles,
      ...(userRoles === undefined ? {} : { userRoles }),
      user: subject,
      account,
      scope: account,
      rights: [...allRightsOf(principal)],
      ...(expiresAt === undefined ? {} : { expiresAt: formatTime(expiresAt) }),
      ...(isLimited ? { repositories: grants.flatMap((grant) => grant.repositories ?? []) } : {}),
    },
    { 'cache-control': 'no-store' },
  )
}
