// How many tokens a server has issued, by method: read from its log, which a client cannot influence.
import type { BerthProcess } from '../support/server/berth-process.ts'

export interface IssuedTokens {
  readonly get: number
  readonly post: number
}

export function countIssuedTokens(berth: Pick<BerthProcess, 'output'>): IssuedTokens {
  const lines = berth.output().split('\n')
  const count = (route: string) =>
    lines.filter((line) => line.includes(`"route":"${route}"`) && line.includes('"status":200')).length
  return { get: count('getScopedToken'), post: count('postScopedToken') }
}
