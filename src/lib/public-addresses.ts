import { AddressRanges, isAddress } from './ip-addresses.ts'

/**
 * Addresses that do not belong to one host of the public Internet: those of the IANA registries of special-purpose addresses, and
 * multicast. Some of them contain an IPv4 address, and a gateway may translate them to it.
 */
const special = new AddressRanges([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
])

/** Only these IPv6 addresses are assigned to the Internet (RFC 4291). */
const globalUnicast = new AddressRanges(['2000::/3'])
const specialUnicast = new AddressRanges(['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'])

/** An IPv4-mapped address counts as the IPv4 address. */
export function isPublicAddress(address: string): boolean {
  if (!isAddress(address) || address.includes('%')) return false
  if (special.has(address)) return false
  return isIpv4(address) || (globalUnicast.has(address) && !specialUnicast.has(address))
}

const allIpv4 = new AddressRanges(['0.0.0.0/0'])

function isIpv4(address: string): boolean {
  return allIpv4.has(address)
}
