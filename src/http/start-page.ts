import { hashHex } from '../lib/hashing.ts'
import type { Answer } from './answer.ts'
import type { Exchange } from './exchange.ts'
import { apiPrefix } from './mounts.ts'
import { json, type Route } from './route.ts'
import { pageScript, pageStyle, type ServerDescription, writePage } from './start-page-template.ts'

export const startPageRoutes: readonly Route[] = [
  {
    operationId: 'getStartPage',
    method: 'GET',
    pattern: '/',
    access: 'anyone',
    handle: getStartPage,
    summary: 'Get the start page of the server',
    description:
      'HTML for clients that prefer `text/html` in `Accept`, as browsers do; JSON for all others. It shows nothing about stored content.',
    hasNoDependencies: true,
    answers: {
      200: {
        description: 'The version, and the commands to sign in, push and pull at the address of this request.',
        headers: {
          Vary: 'always',
          'Cache-Control': 'always',
          'Content-Security-Policy': 'sometimes',
          'Referrer-Policy': 'sometimes',
        },
        content: { ...json('ServerDescription'), 'text/html; charset=utf-8': 'bytes' },
      },
    },
  },
]

/** The page loads nothing, runs only its own script, and cannot be shown in a frame. */
const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src '${sourceHash(pageStyle)}'`,
  `script-src '${sourceHash(pageScript)}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

function sourceHash(text: string): string {
  return `sha256-${Buffer.from(hashHex('sha256', text), 'hex').toString('base64')}`
}

/** A page for browsers, JSON for all other clients. */
async function getStartPage({ app, request, peers }: Exchange): Promise<Answer> {
  const origin = peers.originOf(request)
  const server = describeServer(origin.slice(origin.indexOf('//') + 2), app.http)
  // The answer also depends on `Host`, so a shared cache must not reuse it.
  const headers = { vary: 'Accept', 'cache-control': 'no-cache' }
  if (!prefersHtml(request.headers.get('accept') ?? '')) {
    const body = `${JSON.stringify(server, undefined, 2)}\n`
    return { status: 200, headers: { ...headers, 'content-type': 'application/json' }, body }
  }
  return {
    status: 200,
    headers: {
      ...headers,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
      'referrer-policy': 'no-referrer',
    },
    body: writePage(server, needsTls(origin)),
  }
}

function describeServer(
  registry: string,
  { serviceName, version, hasRootMount, docsUrl }: Exchange['app']['http'],
): ServerDescription {
  const image = `${registry}/team/alpine`
  const commands = {
    login: `docker login ${registry} -u apikey`,
    tag: `docker tag alpine ${image}`,
    push: `docker push ${image}`,
    pull: `docker pull ${image}`,
  }
  return {
    name: serviceName,
    version,
    registry,
    ...(hasRootMount ? { commands } : {}),
    openapi: `${apiPrefix}/openapi.json`,
    ...(docsUrl === undefined ? {} : { documentation: docsUrl }),
  }
}

/** By default, Docker uses plain HTTP only for its own machine. */
function needsTls(origin: string): boolean {
  return origin.startsWith('http://') && !/^http:\/\/(?:localhost|127\.[\d.]+|\[::1\])(?::|$)/.test(origin)
}

/** RFC 9110, 12.5.1: a media type with its parameters. */
const htmlEntry = /(?:^|,)[ \t]*text\/html[ \t]*(?:;([^,]*))?(?:,|$)/i
const jsonEntry = /(?:^|,)[ \t]*application\/json[ \t]*(?:;([^,]*))?(?:,|$)/i
const weight = /(?:^|;)[ \t]*q=([\d.]+)/i

/** Browsers list `text/html`. A client that accepts any type, such as curl, is no browser. */
function prefersHtml(accept: string): boolean {
  return weightOf(htmlEntry.exec(accept)) > weightOf(jsonEntry.exec(accept))
}

/** RFC 9110, 12.4.2: a type without a weight has the weight 1. */
function weightOf(entry: RegExpExecArray | null): number {
  if (entry === null) return 0
  const given = weight.exec(entry[1] ?? '')?.[1]
  return given === undefined ? 1 : Number(given) || 0
}
