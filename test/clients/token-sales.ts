// Which tokens a server has sold, and how they were asked for: read from its log, which no client can colour.
import type { BerthProcess } from '../support/server/berth-process.ts'

export interface TokenSales {
  readonly get: number
  readonly post: number
}

export function countTokenSales(berth: Pick<BerthProcess, 'output'>): TokenSales {
  const lines = berth.output().split('\n')
  const count = (route: string) =>
    lines.filter((line) => line.includes(`"route":"${route}"`) && line.includes('"status":200')).length
  return { get: count('getScopedToken'), post: count('postScopedToken') }
}
