import { allRightsOf } from '../../identity/rights.ts'
import { formatTime } from '../../lib/quantities.ts'
import { Unavailable } from '../../oci/errors.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { CallerExchange } from '../exchange.ts'
import { identityPrefix } from '../mounts.ts'
import { json, type Route } from '../route.ts'

export const meRoutes: readonly Route[] = [
  {
    operationId: 'getMe',
    method: 'GET',
    pattern: `${identityPrefix}/me`,
    access: 'known caller',
    right: undefined,
    handle: getMe,
    summary: 'Describe the caller',
    answers: {
      200: { description: 'The caller.', headers: { 'Cache-Control': 'always' }, content: json('MeResponse') },
    },
  },
]

/**
 * spec.md requires `roles`. The other fields save a second request, and tell another Berth the limits of an API key.
 */
async function getMe({ principal }: CallerExchange): Promise<Answer> {
  // The caller may be another Berth, which would remember an old answer as if it were new.
  if (principal.isUnconfirmed) throw new Unavailable('identity-service')
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
