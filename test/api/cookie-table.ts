// Whether a request that a browser sends along with its cookie may act: methods x carriers x Sec-Fetch-Site x Origin.
import { api, identity } from '../support/api/api-server.ts'

export const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export const brought = ['cookie', 'header', 'both'] as const
export const sites = ['same-origin', 'same-site', 'cross-site', 'none', 'absent'] as const
export const origins = ['absent', 'own', 'another port', 'another', 'null', 'public', 'several'] as const

export interface Row {
  readonly method: (typeof methods)[number]
  readonly carries: (typeof brought)[number]
  readonly site: (typeof sites)[number]
  readonly origin: (typeof origins)[number]
}

export const rows: readonly Row[] = methods.flatMap((method) =>
  brought.flatMap((carries) => sites.flatMap((site) => origins.map((origin) => ({ method, carries, site, origin })))),
)

export const titleOf = ({ method, carries, site, origin }: Row) =>
  `${method} with ${carries}, Sec-Fetch-Site ${site}, Origin ${origin}`

export const publicUrl = 'https://registry.example.com'

/** An example request for each method, and its status for a caller with the right. */
const examples: Readonly<Record<Row['method'], readonly [path: string, status: number, body?: string]>> = {
  GET: ['/v2/', 200],
  HEAD: ['/v2/', 200],
  OPTIONS: ['/v2/', 405],
  POST: [`${api}/enable`, 200],
  PUT: ['/v2/cookies/app/manifests/v1', 400, 'no manifest'],
  PATCH: [`${identity}/users/admin`, 200, '{"roles":["admin"]}'],
  DELETE: ['/v2/cookies/app/manifests/v1', 404],
}

export interface Facts {
  readonly url: string
  readonly cookie: string
  readonly key: string
  /** The origin that counts as ours: the public one, if it is configured. */
  readonly ours: 'own' | 'public'
}

export async function answerTo({ method, carries, site, origin }: Row, { url, cookie, key }: Facts): Promise<number> {
  const [path, , body] = examples[method]
  const named = originNamed(origin, url)
  const answer = await fetch(url + path, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(carries === 'header' ? {} : { cookie: `svc-auth=${cookie}` }),
      ...(carries === 'cookie' ? {} : { 'x-api-key': key }),
      ...(site === 'absent' ? {} : { 'sec-fetch-site': site }),
      ...(named === undefined ? {} : { origin: named }),
    },
    ...(body === undefined ? {} : { body }),
  })
  await answer.arrayBuffer()
  return answer.status
}

function originNamed(origin: Row['origin'], url: string): string | undefined {
  switch (origin) {
    case 'absent':
      return undefined
    case 'own':
      return url
    case 'another port':
      return `http://127.0.0.1:${(Number(new URL(url).port) % 60_000) + 1_024}`
    case 'another':
      return 'https://evil.example'
    case 'null':
      return 'null'
    case 'public':
      return publicUrl
    case 'several':
      return `${url}, ${publicUrl}`
  }
}

/**
 * decisions.md 5, safety.md 5.6: an explicit carrier decides, and counts from anywhere. The cookie counts for looking; for
 * acting only if `Sec-Fetch-Site` says that it is our own page's request or the user's own. Without `Sec-Fetch-Site` the
 * origin must be ours, or absent: no browser sends neither header.
 */
export function wantedAnswer({ method, carries, site, origin }: Row, { ours }: Facts): number {
  const [, status] = examples[method]
  const isSafe = method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
  if (carries !== 'cookie' || isSafe) return status
  const isOurPage =
    site === 'absent' ? origin === ours || origin === 'absent' : site === 'same-origin' || site === 'none'
  return isOurPage ? status : 403
}
