// Which client did what: filled in by the tests as they pass or fail, never by hand.
export const verbs = ['login', 'push', 'pull', 'multi-arch', 'delete'] as const
export type Verb = (typeof verbs)[number]

type Cell = 'ok' | 'FAILED' | 'not run' | '-'

export class ClientMatrix {
  private readonly rows = new Map<string, Map<Verb, Cell>>()

  /** `its` are the verbs that the client has at all. */
  addRow(client: string, its: readonly Verb[]): void {
    this.rows.set(client, new Map(verbs.map((verb) => [verb, its.includes(verb) ? 'not run' : '-'])))
  }

  /** A verb that several tests try is good only if all of them pass. */
  record(client: string, verb: Verb, passed: boolean): void {
    const row = this.rows.get(client)
    const before = row?.get(verb)
    if (row === undefined || before === undefined || before === '-') throw new Error(`${client} has no '${verb}'`)
    row.set(verb, passed && before !== 'FAILED' ? 'ok' : 'FAILED')
  }

  toString(): string {
    const lines = [...this.rows].map(([client, cells]) => [client, ...verbs.map((verb) => cells.get(verb) ?? '-')])
    const table = [['client', ...verbs], ...lines]
    const width = Math.max(...table.map(([client = '']) => client.length)) + 2
    return table
      .map(
        ([client = '', ...cells]) =>
          client.padEnd(width) +
          cells
            .map((c) => c.padEnd(12))
            .join('')
            .trimEnd(),
      )
      .join('\n')
  }
}
