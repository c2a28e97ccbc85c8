import { type Answer, type Exchange, jsonAnswer } from '../exchange.ts'

/** GET /api/2023-12-28/openapi.json */
export async function getOpenApi(_exchange: Exchange): Promise<Answer> {
  return jsonAnswer(200, {})
}
