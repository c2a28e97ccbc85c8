import { BlockList, isIP } from 'node:net'

/** A set of addresses and ranges. */
export class AddressRanges {
  readonly #ranges = new BlockList()
  readonly #isEmpty: boolean

  constructor(ranges: readonly string[]) {
    this.#isEmpty = ranges.length === 0
    for (const range of ranges) {
      const { address, family, bits } = parseRange(range) ?? failed(range)
      this.#ranges.addSubnet(address, bits, family)
    }
  }

  has(address: string): boolean {
    if (this.#isEmpty) return false
    const plain = unmapped(address)
    const family = isIP(plain)
    return family !== 0 && this.#ranges.check(plain, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/** Proxies whose `X-Forwarded-For` is trusted. */
export class TrustedProxies extends AddressRanges {
  /** The client: the last hop of `X-Forwarded-For` that is no trusted proxy. Earlier hops may be forged. */
  clientOf(peer: string, forwardedFor: string | null): string {
    let client = unmapped(peer)
    if (forwardedFor === null) return client
    const hops = forwardedFor.split(',').map((hop) => hop.trim())
    while (this.has(client)) {
      const hop = parseHop(hops.pop() ?? '')
      if (hop === undefined) return client
      client = hop
    }
    return client
  }
}

export function isAddress(text: string): boolean {
  return isIP(text) !== 0
}

export function isAddressRange(text: string): boolean {
  return parseRange(text) !== undefined
}

/**
 * The networks of a client, the narrowest first. An IPv4 address is its own network. With IPv6, one client usually has
 * a /64, and a customer of a provider often has a whole /56 or /48.
 */
export function networksOf(address: string): readonly string[] {
  if (isIP(address) !== 6) return [address]
  const [first = 0, second = 0, third = 0, fourth = 0] = groupsOf(address)
  const name = (groups: readonly number[], bits: number) =>
    `${groups.map((group) => group.toString(16)).join(':')}::/${bits}`
  return [
    name([first, second, third, fourth], 64),
    name([first, second, third, fourth & 0xff00], 56),
    name([first, second, third], 48),
  ]
}

/** Parses an address as proxies write it, with or without the port. */
function parseHop(text: string): string | undefined {
  const [, inBrackets, beforePort] = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? []
  const address = inBrackets ?? beforePort ?? text
  return isIP(address) === 0 ? undefined : unmapped(address)
}

/** `::ffff:192.0.2.1` -> `192.0.2.1`, as an IPv4 client appears on an IPv6 socket. */
export function unmapped(address: string): string {
  if (isIP(address) !== 6) return address
  const groups = groupsOf(address)
  const [high = 0, low = 0] = groups.slice(6)
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)
  return isMapped ? [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.') : address
}

/** The eight numbers of an IPv6 address. */
export function groupsOf(address: string): readonly number[] {
  const [plain = ''] = address.split('%', 1)
  const inHex = plain.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => `${pair(a, b)}:${pair(c, d)}`)
  const [left = [], right = []] = inHex.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const gap = Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...gap, ...right].map((group) => Number.parseInt(group, 16))
}

function pair(high: string, low: string): string {
  return (Number(high) * 256 + Number(low)).toString(16)
}

function parseRange(text: string): { address: string; family: 'ipv4' | 'ipv6'; bits: number } | undefined {
  const [address = '', bitsText, more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more !== undefined) return undefined
  const bitsMax = version === 6 ? 128 : 32
  const bits = bitsText === undefined ? bitsMax : /^\d{1,3}$/.test(bitsText) ? Number(bitsText) : Number.NaN
  if (!(bits <= bitsMax)) return undefined
  const plain = unmapped(address)
  if (plain !== address && bits >= 96) return { address: plain, family: 'ipv4', bits: bits - 96 }
  return { address, family: version === 6 ? 'ipv6' : 'ipv4', bits }
}

function failed(range: string): never {
  throw new Error(`${range} is no address and no range`)
}

/** As in a URL: an IPv6 address stands in brackets before the port. */
export function formatHostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
