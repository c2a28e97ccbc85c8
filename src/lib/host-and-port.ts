/** As in a URL: an IPv6 address stands in brackets before the port. */
export function formatHostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
