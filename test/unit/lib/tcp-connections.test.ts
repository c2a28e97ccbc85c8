import { describe, expect, test } from 'bun:test'
import { readConnections } from '../../../src/lib/tcp-connections.ts'

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
const rest = '00000000     0        0 361622 2 000000006fb7e7a4 20 4 31 15 -1'
const line = (local: string, remote: string, state: string, queues: string, timer: string): string =>
  ` 234: 0100007F:${local} 0100007F:${remote} ${state} ${queues} ${timer} ${rest}`

const ours = 0x16bd
const table = (...lines: readonly string[]): string => [head, ...lines, ''].join('\n')

describe("the kernel's table of connections", () => {
  test('tells a receiver that shut its window from one that is being sent to, and from one that has it all', () => {
    const found = readConnections(
      [
        table(
          line('16BD', '85BC', '01', '003D8C00:00000000', '04:00000298'),
          line('16BD', '85BD', '01', '003D8C00:00000000', '01:00000012'),
          line('16BD', '85BE', '01', '00000000:00000000', '00:00000000'),
        ),
      ],
      ours,
    )

    expect([...found]).toEqual([
      [0x85bc, 'receiver stopped'],
      [0x85bd, 'sending'],
      [0x85be, 'nothing to send'],
    ])
  })

  test('counts neither other ports nor connections that are not established', () => {
    const found = readConnections(
      [
        table(
          line('1F90', '85BC', '01', '003D8C00:00000000', '04:00000298'),
          line('16BD', '85BD', '06', '003D8C00:00000000', '04:00000298'),
        ),
      ],
      ours,
    )

    expect(found.size).toBe(0)
  })

  test('lets the connection that flows hide a stopped one of the same port on another machine, in either order', () => {
    const stopped = line('16BD', '85BC', '01', '003D8C00:00000000', '04:00000298')
    const flowing = line('16BD', '85BC', '01', '003D8C00:00000000', '01:00000012')

    expect(readConnections([table(stopped), table(flowing)], ours).get(0x85bc)).toBe('sending')
    expect(readConnections([table(flowing), table(stopped)], ours).get(0x85bc)).toBe('sending')
  })

  test('makes nothing of a table that is cut short', () => {
    expect(readConnections(['', '  sl', ' 1: 0100007F:16BD'], ours).size).toBe(0)
  })
})
