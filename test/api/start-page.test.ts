// getStartPage: what a browser and other clients get at the address of the server.
import { afterAll, describe, expect, test } from 'bun:test'
import manifest from '../../package.json' with { type: 'json' }
import { type ApiServer, startApi } from '../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const ask = (headers: Readonly<Record<string, string>>, asked: ApiServer = server, method = 'GET') =>
  asked.ask(method, '/', { key: 'none', headers })

async function askOnce(settings: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>>) {
  await using own = await startApi(settings).then((api) => ({ api, [Symbol.asyncDispose]: api.stop }))
  return await ask(headers, own.api)
}

describe('getStartPage', () => {
  test('tells an anonymous caller the version and the exact commands for the address of the request', async () => {
    const reply = await ask({ host: 'registry.example.com:8443', accept: '*/*' })

    expect([reply.status, reply.json<unknown>()]).toEqual([
      200,
      {
        name: 'Berth',
        version: manifest.version,
        registry: 'registry.example.com:8443',
        commands: {
          login: 'docker login registry.example.com:8443 -u apikey',
          tag: 'docker tag alpine registry.example.com:8443/team/alpine',
          push: 'docker push registry.example.com:8443/team/alpine',
          pull: 'docker pull registry.example.com:8443/team/alpine',
        },
        openapi: '/api/2023-12-28/openapi.json',
      },
    ])
  })

  test('gives a browser the same as a page that loads nothing and runs nothing but its own script', async () => {
    const reply = await ask({ ...browser, host: 'registry.example.com' })
    const policy = reply.headers.get('content-security-policy') ?? ''
    const inlineSource = (tag: string) => new RegExp(`<${tag}>([^]*)</${tag}>`).exec(reply.text)?.[1] ?? ''
    const hashOf = (text: string) => `'sha256-${new Bun.CryptoHasher('sha256').update(text).digest('base64')}'`

    expect(reply.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(policy).toStartWith("default-src 'none'; ")
    expect(policy).toContain(`script-src ${hashOf(inlineSource('script'))};`)
    expect(policy).toContain(`style-src ${hashOf(inlineSource('style'))};`)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(reply.text).toContain(`Version ${manifest.version}.`)
    expect(reply.text).toContain('<code>docker login registry.example.com -u apikey</code>')
    expect(reply.text).toContain('<a href="/api/2023-12-28/openapi.json">')
    expect(reply.text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
  })

  test('answers HEAD with the headers of GET and no body', async () => {
    for (const headers of [browser, { accept: '*/*' }]) {
      const [get, head] = [await ask(headers), await ask(headers, server, 'HEAD')]

      expect([head.status, head.bytes.length]).toEqual([200, 0])
      expect(head.headers.get('content-length')).toBe(String(get.bytes.length))
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    }
  })

  test.each([
    ['', 'application/json'],
    ['application/json', 'application/json'],
    ['application/json, text/html;q=0.9', 'application/json'],
    ['text/html;q=0, */*', 'application/json'],
    ['TEXT/HTML', 'text/html; charset=utf-8'],
    ['application/json;q=0.5, text/html ; q=0.6', 'text/html; charset=utf-8'],
  ])('to Accept %p it answers with %s', async (accept, type) => {
    const reply = await ask({ accept })

    expect([reply.headers.get('content-type'), reply.headers.get('vary')]).toEqual([type, 'Accept'])
  })

  test('tells public_url and not the Host of the request, and links to the documentation that is set', async () => {
    const settings = {
      BERTH_SERVER__PUBLIC_URL: 'https://images.example.org',
      BERTH_SERVER__DOCS_URL: 'https://wiki.example.org/images',
    }
    const reply = await askOnce(settings, { ...browser, host: 'other.example.com' })

    expect(reply.text).toContain('docker login images.example.org -u apikey')
    expect(reply.text).toContain('<a href="https://wiki.example.org/images">')
    expect(reply.text).not.toContain('other.example.com')
    expect(reply.text).not.toContain('insecure-registries')
  })

  test('says that docker cannot use the server where the registry is not at the root', async () => {
    const settings = { BERTH_REGISTRY__ROOT_MOUNT: 'false' }

    expect((await askOnce(settings, { accept: '*/*' })).json<object>()).not.toHaveProperty('commands')
    expect((await askOnce(settings, browser)).text).toContain('registry.root_mount')
  })

  test('refuses a Host that is none, such as one with markup in it', async () => {
    for (const host of ['<script>', 'a"b', "a'b", 'a&b']) {
      expect((await ask({ ...browser, host })).status).toBe(400)
    }
  })
})
