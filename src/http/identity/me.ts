import { type Answer, type CallerExchange, jsonAnswer } from '../exchange.ts'

/** GET /api/2021-02-21/me - who the caller is. `roles` is the contract; the rest saves a second question. */
export async function getMe({ principal }: CallerExchange): Promise<Answer> {
  return jsonAnswer(
    200,
    {
      roles: principal.roles,
      user: principal.subject,
      account: principal.account,
      scope: principal.account,
      rights: [...principal.rights],
    },
    { 'cache-control': 'no-store' },
  )
}
