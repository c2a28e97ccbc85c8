import { describe, expect, test } from 'bun:test'
import { Disconnected, RemoteCalls } from '../../../src/lib/remote-calls.ts'

interface Sums {
  add(values: readonly number[]): Promise<number>
  fail(reason: string): void
  note(text: string): void
  wait(argument: undefined): Promise<void>
}
type Nothing = Record<never, never>

function connect() {
  const noted: string[] = []
  const own: Sums = {
    add: async (values) => values.reduce((sum, value) => sum + value, 0),
    fail: (reason) => {
      throw new Error(reason)
    },
    note: (text) => void noted.push(text),
    wait: () => new Promise(() => undefined),
  }
  const server: RemoteCalls<Sums, Nothing> = new RemoteCalls<Sums, Nothing>(own, (message) => client.receive(message))
  const client: RemoteCalls<Nothing, Sums> = new RemoteCalls<Nothing, Sums>({}, (message) => server.receive(message))
  return { client, noted }
}

describe('calls between processes', () => {
  test('return results and errors', async () => {
    const { client } = connect()
    expect(await Promise.all([client.call('add', [1, 2]), client.call('add', [3, 4])])).toEqual([3, 7])
    expect(await client.call('fail', 'planned').catch(String)).toBe('Error: planned')
  })

  test('without an answer take effect before the next message', async () => {
    const { client, noted } = connect()
    client.tell('note', 'a')
    client.tell('note', 'b')
    expect(noted).toEqual(['a', 'b'])
    client.tell('fail', 'nobody hears it')
  })

  test('fail when the other process is gone', async () => {
    const { client } = connect()
    const waiting = client.call('wait', undefined)
    client.close()
    expect(await waiting.catch((error: unknown) => error)).toBeInstanceOf(Disconnected)
    expect(await client.call('add', [1]).catch((error: unknown) => error)).toBeInstanceOf(Disconnected)
  })
})
