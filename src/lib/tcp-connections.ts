import { readFileSync } from 'node:fs'
import { groupsOf, unmapped } from './ip-addresses.ts'

const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
const established = '01'
/** How an IPv4 address starts in the table of an IPv6 socket (`::ffff:192.0.2.1`). */
const mappedPrefix = '0000000000000000FFFF0000'

/**
 * For each connection to a local port, how many bytes wait in the kernel to be sent or acknowledged. The key is the
 * remote end, as `remoteKeyOf` formats it. Undefined if the kernel does not tell.
 */
export function listSendQueues(localPort: number): ReadonlyMap<string, number> | undefined {
  const texts = tables.map(readTable).filter((text) => text !== undefined)
  return texts.length === 0 ? undefined : readSendQueues(texts, localPort)
}

/**
 * A client may use one port for connections to two addresses of this machine. Bun does not tell to which address a
 * request came, so the bytes of such connections are added up.
 */
export function readSendQueues(texts: readonly string[], localPort: number): ReadonlyMap<string, number> {
  const wanted = toHex(localPort, 4)
  const found = new Map<string, number>()
  for (const text of texts) {
    for (const line of text.split('\n')) addConnection(found, line, wanted)
  }
  return found
}

/** The remote end of a connection in the format of the kernel's table: the address in hexadecimal, then the port. */
export function remoteKeyOf(address: string, port: number): string {
  const plain = unmapped(address)
  const words = plain.includes(':') ? pairsOf(groupsOf(plain)) : [plain.split('.').map(Number)]
  const text = words.map((bytes) =>
    (isLittleEndian ? bytes.toReversed() : bytes).map((byte) => toHex(byte, 2)).join(''),
  )
  return `${text.join('')}:${toHex(port, 4)}`
}

/** The kernel writes an address as 32-bit numbers in the byte order of the machine. */
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1

/** Converts eight 16-bit numbers to four 32-bit numbers, each as its four bytes. */
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
