import { type Answer, type CallerExchange, jsonAnswer } from '../exchange.ts'

/** GET /v2/ - the caller is who it says; nothing else is asked here, so that logins work for a disabled account too. */
export async function checkAuthentication(_exchange: CallerExchange): Promise<Answer> {
  return jsonAnswer(200, {})
}
