import { readFileSync } from 'node:fs'
import { groupsOf, unmapped } from './ip-addresses.ts'

const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
const established = '01'
/** An IPv4 address in the table of a socket that takes both families (`::ffff:192.0.2.1`). */
const mappedPrefix = '0000000000000000FFFF0000'

/**
 * How many bytes wait in the kernel to be sent or to be acknowledged, in each connection to a local port. The key is the
 * other end, as `remoteKeyOf` writes it. Undefined where the kernel does not tell.
 */
export function listSendQueues(localPort: number): ReadonlyMap<string, number> | undefined {
  const texts = tables.map(readTable).filter((text) => text !== undefined)
  return texts.length === 0 ? undefined : readSendQueues(texts, localPort)
}

/**
 * A client may use one port for two connections, if they go to two addresses of this machine. Bun does not tell which of
 * these addresses a request came to, so the bytes of such connections are added up.
 */
export function readSendQueues(texts: readonly string[], localPort: number): ReadonlyMap<string, number> {
  const wanted = toHex(localPort, 4)
  const found = new Map<string, number>()
  for (const text of texts) {
    for (const line of text.split('\n')) addConnection(found, line, wanted)
  }
  return found
}

/** The other end of a connection, as the kernel's table writes it: the address in hexadecimal, then the port. */
export function remoteKeyOf(address: string, port: number): string {
  const plain = unmapped(address)
  const words = plain.includes(':') ? pairsOf(groupsOf(plain)) : [plain.split('.').map(Number)]
  const text = words.map((bytes) =>
    (isLittleEndian ? bytes.toReversed() : bytes).map((byte) => toHex(byte, 2)).join(''),
  )
  return `${text.join('')}:${toHex(port, 4)}`
}

/** The kernel writes an address as numbers of 32 bits in the machine's own byte order. */
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1

/** Eight numbers of 16 bits become four of 32 bits, each as its four bytes. */
function pairsOf(groups: readonly number[]): number[][] {
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff])
  return [0, 4, 8, 12].map((at) => bytes.slice(at, at + 4))
}

function toHex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0')
}

function readTable(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}

/** A line is `sl local_address rem_address st tx_queue:rx_queue ...`; an address is `hex:port`. */
function addConnection(found: Map<string, number>, line: string, wantedPort: string): void {
  const [, local = '', remote = '', state, queues = ''] = line.trim().split(/\s+/)
  if (state !== established || !local.endsWith(`:${wantedPort}`)) return
  const key = remote.startsWith(mappedPrefix) ? remote.slice(mappedPrefix.length) : remote
  found.set(key, (found.get(key) ?? 0) + Number.parseInt(queues, 16))
}
