// Which client did what under which challenge: filled in by the tests as they pass or fail, never by hand.
import type { Challenge } from './servers.ts'

export const verbs = ['login', 'push', 'pull', 'multi-arch', 'delete', 'anonymous'] as const
export type Verb = (typeof verbs)[number]

type Cell = 'ok' | 'FAILED' | 'not run' | '-'

interface Row {
  readonly client: string
  readonly challenge: Challenge
  readonly cells: Map<Verb, Cell>
  tokens: string
}

export class ClientMatrix {
  private readonly rows: Row[] = []

  /** `its` are the verbs that the client has at all. */
  addRow(client: string, challenge: Challenge, its: readonly Verb[]): void {
    const cells = new Map(verbs.map((verb): [Verb, Cell] => [verb, its.includes(verb) ? 'not run' : '-']))
    this.rows.push({ client, challenge, cells, tokens: 'not run' })
  }

  /** A verb that several tests try is good only if all of them pass. */
  record(client: string, challenge: Challenge, verb: Verb, passed: boolean): void {
    const { cells } = this.find(client, challenge)
    const before = cells.get(verb)
    if (before === undefined || before === '-') throw new Error(`${client} has no '${verb}'`)
    cells.set(verb, passed && before !== 'FAILED' ? 'ok' : 'FAILED')
  }

  /** By which methods the client was seen to fetch tokens. */
  recordTokens(client: string, challenge: Challenge, tokens: string): void {
    this.find(client, challenge).tokens = tokens
  }

  toString(): string {
    const inOrder = [...Map.groupBy(this.rows, (row) => row.client).values()].flat()
    const lines = inOrder.map(({ client, challenge, cells, tokens }) => [
      client,
      challenge,
      ...verbs.map((verb) => cells.get(verb) ?? '-'),
      tokens,
    ])
    const table = [['client', 'challenge', ...verbs, 'tokens by'], ...lines]
    const width = Math.max(...table.map(([client = '']) => client.length)) + 2
    return table.map(([client = '', ...cells]) => client.padEnd(width) + toCells(cells)).join('\n')
  }

  private find(client: string, challenge: Challenge): Row {
    const row = this.rows.find((one) => one.client === client && one.challenge === challenge)
    if (row === undefined) throw new Error(`${client} has no row for ${challenge}`)
    return row
  }
}

function toCells(cells: readonly string[]): string {
  return cells
    .map((cell) => cell.padEnd(12))
    .join('')
    .trimEnd()
}
