import { describe, expect, test } from 'bun:test'
import { readSendQueues, remoteKeyOf } from '../../../src/lib/tcp-connections.ts'

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
const rest = '04:00000298 00000000     0        0 361622 2 000000006fb7e7a4 20 4 31 15 -1'
const line = (local: string, remote: string, state: string, queues: string): string =>
  ` 234: 0100007F:${local} 0100007F:${remote} ${state} ${queues} ${rest}`

const ours = 0x16bd
const table = (...lines: readonly string[]): string => [head, ...lines, ''].join('\n')

describe("the kernel's table of connections", () => {
  test('tells how many bytes wait in each connection to the port', () => {
    const text = table(line('16BD', '85BC', '01', '003D8C00:00000000'), line('16BD', '85BD', '01', '00000000:00000007'))

    expect([...readSendQueues([text], ours)]).toEqual([
      [remoteKeyOf('127.0.0.1', 0x85bc), 0x3d8c00],
      [remoteKeyOf('127.0.0.1', 0x85bd), 0],
    ])
  })

  test('counts neither other ports nor connections that are not established', () => {
    const text = table(line('1F90', '85BC', '01', '00000009:00000000'), line('16BD', '85BD', '06', '00000009:00000000'))

    expect(readSendQueues([text], ours).size).toBe(0)
  })

  // The lines are those of Linux on a little-endian machine.
  test.each([
    ['127.0.0.2', '0200007F'],
    ['127.0.0.3', '0300007F'],
    ['::1', '00000000000000000000000001000000'],
    ['2001:db8::a1b2:c3d4', 'B80D01200000000000000000D4C3B2A1'],
    ['::ffff:192.0.2.1', '0000000000000000FFFF0000010200C0'],
    ['192.0.2.1', '0000000000000000FFFF0000010200C0'],
  ])('tells connections from one port of different addresses apart: %s', (address, hex) => {
    const text = table(
      ` 0: 0100007F:16BD ${hex}:85BC 01 00000005:00000000 ${rest}`,
      ` 1: 0100007F:16BD 0900007F:85BC 01 00000004:00000000 ${rest}`,
    )

    const queues = readSendQueues([text], ours)

    expect(queues.size).toBe(2)
    expect(queues.get(remoteKeyOf(address, 0x85bc))).toBe(5)
  })

  test('makes nothing of a table that is cut short', () => {
    expect(readSendQueues(['', '  sl', ' 1: 0100007F:16BD'], ours).size).toBe(0)
  })
})
