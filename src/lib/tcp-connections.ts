import { readFileSync } from 'node:fs'

/** What the kernel says of one established connection. */
export type ConnectionState = 'nothing to send' | 'sending' | 'receiver stopped'

const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
const established = '01'

/** The timer that asks a receiver, whose window is shut, whether it is open again. */
const zeroWindowProbe = '04'

/** The connections to a local port, by the port at the other end; undefined where the kernel does not tell. */
export function listConnections(localPort: number): ReadonlyMap<number, ConnectionState> | undefined {
  const texts = tables.map(readTable).filter((text) => text !== undefined)
  return texts.length === 0 ? undefined : readConnections(texts, localPort)
}

/**
 * Two connections from different machines may have the same port: then the one that flows hides the other, which is the
 * safe way to err.
 */
export function readConnections(texts: readonly string[], localPort: number): ReadonlyMap<number, ConnectionState> {
  const wanted = localPort.toString(16).toUpperCase().padStart(4, '0')
  const found = new Map<number, ConnectionState>()
  for (const text of texts) {
    for (const line of text.split('\n')) addConnection(found, line, wanted)
  }
  return found
}

function readTable(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}

/** `sl local_address rem_address st tx_queue:rx_queue tr:when ...`, addresses as `hex:port`. */
function addConnection(found: Map<number, ConnectionState>, line: string, wantedPort: string): void {
  const [, local = '', remote = '', state, queues = '', timer = ''] = line.trim().split(/\s+/)
  if (state !== established || !local.endsWith(`:${wantedPort}`)) return
  const port = Number.parseInt(remote.slice(remote.lastIndexOf(':') + 1), 16)
  const isEmpty = Number.parseInt(queues, 16) === 0
  const now = isEmpty ? 'nothing to send' : timer.startsWith(`${zeroWindowProbe}:`) ? 'receiver stopped' : 'sending'
  const before = found.get(port)
  found.set(port, before === 'sending' || now === 'sending' ? 'sending' : now)
}
