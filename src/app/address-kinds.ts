import { isAddressRange } from '../lib/ip-addresses.ts'
import { type Kind, kind, listOf } from './setting-kinds.ts'

// The kinds of settings whose values are addresses of services or networks.

/** An http(s) address without a path, as `docker login` accepts it. */
export function optionalUrl(): Kind<string | undefined> {
  const allowed = 'an address such as https://registry.example.com'
  return kind<string | undefined>(undefined, '', allowed, (given) => {
    const url = URL.canParse(given) ? new URL(given) : undefined
    if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/') return undefined
    return url.search === '' && url.hash === '' && url.username === '' && url.password === '' ? url.origin : undefined
  })
}

/** An http(s) address of another service. It may have a path. */
export function serviceUrl(example: string): Kind<string | undefined> {
  const allowed = `an http or https address without credentials and query, such as ${example}`
  return kind<string | undefined>(undefined, '', allowed, (given) => {
    const url = URL.canParse(given) ? new URL(given) : undefined
    if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return undefined
    if (/[?#]/.test(given) || url.username !== '' || url.password !== '') return undefined
    return url.href.replace(/\/+$/, '')
  })
}

/** The address from which a container gets credentials. It sends its token there: unencrypted only to near addresses. */
export function credentialsUrl(): Kind<string | undefined> {
  const allowed =
    'an https address, or an http address of this machine or of the agents of ECS and EKS (169.254.170.2, 169.254.170.23, [fd00:ec2::23])'
  const safe = /^(https:|http:\/\/(localhost|127(\.\d+){3}|\[::1\]|169\.254\.170\.23?|\[fd00:ec2::23\])(:|$))/
  return kind<string | undefined>(undefined, '', allowed, (uri) => {
    const url = URL.parse(uri)
    return url?.username === '' && url.password === '' && !uri.includes('#') && safe.test(url.origin) ? uri : undefined
  })
}

/** A path that cannot be mistaken for another host (`//host`). */
export function credentialsPath(): Kind<string | undefined> {
  return kind<string | undefined>(undefined, '', 'a path such as /v2/credentials/task', (given) =>
    /^\/(?!\/)[\w.~!$&'()*+,;=:@/?%-]*$/.test(given) ? given : undefined,
  )
}

/** A PostgreSQL address. It may contain a password. */
export function postgresUrl(): Kind<string | undefined> {
  const allowed = 'an address such as postgres://berth@db.example.com/berth?sslmode=require'
  const read = (given: string): string | undefined => {
    const url = URL.canParse(given) ? new URL(given) : undefined
    const isPostgres = url?.protocol === 'postgres:' || url?.protocol === 'postgresql:'
    return isPostgres && url.hostname !== '' && url.pathname.length > 1 ? given : undefined
  }
  return kind<string | undefined>(undefined, '', allowed, read, true)
}

/** IP addresses and networks: `10.0.0.0/8`, `::1`. */
export function addressList(): Kind<readonly string[]> {
  return listOf([], 'a list of IP addresses or networks such as 10.0.0.0/8', (item) =>
    isAddressRange(item) ? item : undefined,
  )
}
