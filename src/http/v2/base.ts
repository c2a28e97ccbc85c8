import { type Answer, jsonAnswer } from '../answer.ts'
import type { CallerExchange } from '../exchange.ts'
import type { Route } from '../route.ts'

export const baseRoutes: readonly Route[] = [
  {
    operationId: 'checkAuthentication',
    method: 'GET',
    pattern: '/',
    access: 'known caller',
    right: undefined,
    handle: checkAuthentication,
    summary: 'Check the credentials',
    description: 'This works also for an account whose registry is disabled. `/v2` without the slash is the same.',
    answers: {
      200: { description: 'The credentials are valid. The body is `{}`.', content: { 'application/json': 'bytes' } },
    },
  },
]

/** The account is not checked, so that `docker login` works for a disabled account too. */
async function checkAuthentication(_exchange: CallerExchange): Promise<Answer> {
  return jsonAnswer(200, {})
}
