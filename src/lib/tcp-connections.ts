import { readFileSync } from 'node:fs'

const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
const established = '01'

/**
 * The connections to a local port, by the port at the other end: how many bytes wait in the kernel to be sent or to be
 * acknowledged. Undefined where the kernel does not tell.
 */
export function listSendQueues(localPort: number): ReadonlyMap<number, number> | undefined {
  const texts = tables.map(readTable).filter((text) => text !== undefined)
  return texts.length === 0 ? undefined : readSendQueues(texts, localPort)
}

/** Connections from different machines may have the same port; they count together. */
export function readSendQueues(texts: readonly string[], localPort: number): ReadonlyMap<number, number> {
  const wanted = localPort.toString(16).toUpperCase().padStart(4, '0')
  const found = new Map<number, number>()
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

/** `sl local_address rem_address st tx_queue:rx_queue ...`, addresses as `hex:port`. */
function addConnection(found: Map<number, number>, line: string, wantedPort: string): void {
  const [, local = '', remote = '', state, queues = ''] = line.trim().split(/\s+/)
  if (state !== established || !local.endsWith(`:${wantedPort}`)) return
  const port = Number.parseInt(remote.slice(remote.lastIndexOf(':') + 1), 16)
  found.set(port, (found.get(port) ?? 0) + Number.parseInt(queues, 16))
}
