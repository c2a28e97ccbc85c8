// What of deploy/ can be held by npm alone. The chart is rendered by deploy/helm/check.sh, where helm is.
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { closingMs } from '../../src/app/serving.ts'
import { settingsTable } from '../../src/app/settings.ts'
import { parseDuration } from '../../src/lib/quantities.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import { readProjectFile } from '../support/house/source-text.ts'
import {
  findGuessableSecrets,
  findLateConnections,
  findLooseImages,
  findNginxDifferences,
  findSchemaGaps,
  findSecretsNotByReference,
  findSecretsNotRefused,
  findStrangeSettings,
  findUnknownSettings,
  findUnknownVariables,
  isRecord,
  mapAt,
  nginxDirectives,
  stopMs,
} from './deploy-rules.ts'

function read(path: string): string {
  const text = readProjectFile(path)
  if (text === undefined) throw new Error(`${path} is not there`)
  return text
}

const files = readdirSync(join(projectRoot, 'deploy'), { recursive: true, withFileTypes: true })
  // A file of secrets may lie there on an operator's machine.
  .filter((entry) => entry.isFile() && entry.name !== '.env')
  .map((entry) => join(entry.parentPath, entry.name).slice(projectRoot.length + 1))
const pages = ['docs/how-to/replicas.md', 'docs/how-to/deploy.md']
const compose = Bun.YAML.parse(read('deploy/compose.yaml'))
const values = Bun.YAML.parse(read('deploy/helm/berth/values.yaml'))
const chart = mapAt(Bun.YAML.parse(read('deploy/helm/berth/Chart.yaml')))
const { version } = JSON.parse(read('package.json'))

/** The environment of a service, as texts. */
function environmentOf(service: string): Record<string, string> {
  const given = mapAt(compose, 'services', service)['environment']
  return isRecord(given) ? Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)])) : {}
}

describe('settings', () => {
  for (const path of [...files, ...pages]) {
    test(`every variable that ${path} names is a setting`, () => {
      expect(findUnknownVariables(read(path))).toEqual([])
    })
  }

  for (const path of pages) {
    test(`every setting that ${path} names is one`, () => expect(findUnknownSettings(read(path))).toEqual([]))
  }

  test("every setting in the chart's values is one", () => {
    expect(findStrangeSettings(mapAt(values, 'config'))).toEqual([])
  })

  test.each<readonly [unknown, readonly string[]]>([
    [findUnknownVariables('BERTH_SERVER__PORT=1 BERTH_S3__BUCKET: x, names begin with BERTH_'), ['BERTH_S3__BUCKET']],
    [findUnknownSettings('`server.drain`, `server.drian`, `metadata.migrate: manual`, `berth.yaml`'), ['server.drian']],
    [
      findStrangeSettings({ server: { drain: '1s', hots: 'x' }, storage: { s3: { bukket: 'x' } } }),
      ['server.hots', 'storage.s3.bukket'],
    ],
  ])('names that are no settings are found: %j', (found, expected) => expect(found).toEqual(expected))

  test('files and pages were looked at', () => expect(files.length).toBeGreaterThan(20))
})

describe('secrets', () => {
  const services = Object.keys(mapAt(compose, 'services'))

  test('compose.yaml has no default for a secret', () => {
    expect(services.flatMap((name) => findGuessableSecrets(environmentOf(name)))).toEqual([])
    const secrets = services.flatMap((name) => Object.values(environmentOf(name))).filter((text) => text.includes(':?'))
    expect(secrets.length).toBeGreaterThan(8)
  })

  test('a default for a secret is found', () => {
    const environment = {
      BERTH_METADATA__URL: 'postgres://berth:secret@db/berth',
      BERTH_STORAGE__S3__SECRET_ACCESS_KEY: '$' + '{KEY:-minio123}',
      POSTGRES_PASSWORD: '$' + '{PASSWORD:?must be given}',
      BERTH_SERVER__PORT: 5000,
    }
    expect(findGuessableSecrets(environment)).toEqual(['BERTH_METADATA__URL', 'BERTH_STORAGE__S3__SECRET_ACCESS_KEY'])
  })

  test('.env.example names each that must be given, and gives none', () => {
    const wanted = new Set([...read('deploy/compose.yaml').matchAll(/\$\{(\w+):\?/g)].map((match) => match[1] ?? ''))
    const example = read('deploy/.env.example')
    for (const name of wanted) expect(example).toContain(`\n${name}=\n`)
    expect(wanted.size).toBe(4)
    expect(read('deploy/.gitignore')).toContain('\n.env\n')
  })

  test('the chart refuses every secret among the settings', () => {
    const names = read('deploy/helm/berth/templates/_names.tpl')
    expect(findSecretsNotRefused(names)).toEqual([])
    expect(findSecretsNotRefused(names.replace('$s3.session_token', ''))).toEqual(['storage.s3.session_token'])
  })

  test('the chart gives secrets by reference alone', () => {
    const templates = files.filter((path) => path.includes('/templates/')).map(read)
    expect(templates.flatMap(findSecretsNotByReference)).toEqual([])
    const planted = '- name: BERTH_METADATA__URL\n  value: {{ .Values.database.url }}'
    expect(findSecretsNotByReference(planted)).toEqual(['BERTH_METADATA__URL'])
    for (const name of ['database', 's3', 'admin']) expect(mapAt(values, name)['existingSecret']).toBe('')
  })

  test('the image contains the named files, and no others', () => {
    const lines = read('.dockerignore').split('\n')
    expect(lines.find((line) => !line.startsWith('#'))).toBe('*')
    const named = lines.filter((line) => line.startsWith('!')).join(' ')
    expect(named).toBe('!package.json !package-lock.json !LICENSE !src/ !deploy/berth.sh')
  })
})

describe('versions', () => {
  test('images have versions', () => {
    expect(findLooseImages(read('deploy/compose.yaml') + read('deploy/Dockerfile'))).toEqual([])
    expect(findLooseImages('  image: nginx\n  image: a/b:latest\n  image: a:1.2-x\nARG NODE_IMAGE=node\n')).toEqual([
      'nginx',
      'a/b:latest',
      'node',
    ])
  })

  test('Dockerfile, compose.yaml and chart name the version of package.json', () => {
    expect(read('deploy/Dockerfile')).toContain(`ARG VERSION=${version}\n`)
    expect(read('deploy/compose.yaml')).toContain(`image: berth:${version}\n`)
    expect(chart['appVersion']).toBe(version)
  })

  test('the runtime is the one that npm brings', () => {
    const bun = 'node_modules/bun/bin/bun.exe'
    expect(read('scripts/install.mjs')).toContain("join(modules, 'bun', 'bin', 'bun.exe')")
    for (const path of ['deploy/Dockerfile', 'deploy/berth.sh', 'deploy/systemd/berth.service']) {
      expect(read(path)).toContain(bun)
    }
    expect(read('deploy/Dockerfile')).toContain('npm ci --omit=dev')
    expect(read('deploy/Dockerfile')).toMatch(/^USER 10001:10001$/m)
  })
})

describe('stopping', () => {
  test('the time that a stop takes comes from the settings', () => {
    const { shutdownDelayMs, drainMs } = settingsTable
    expect(stopMs({ BERTH_SERVER__SHUTDOWN_DELAY: '10s', BERTH_SERVER__DRAIN: '2m' })).toBe(140_000)
    expect(stopMs({})).toBe(shutdownDelayMs.kind.fallback + drainMs.kind.fallback + 10_000)
  })

  test('compose.yaml and the systemd unit give Berth the time that it may take', () => {
    for (const service of ['berth-1', 'berth-2']) {
      const { BERTH_SERVER__SHUTDOWN_DELAY = '', BERTH_SERVER__DRAIN = '' } = environmentOf(service)
      const grace = parseDuration(String(mapAt(compose, 'services', service)['stop_grace_period'])) ?? 0
      expect(grace).toBeGreaterThanOrEqual(stopMs({ BERTH_SERVER__SHUTDOWN_DELAY, BERTH_SERVER__DRAIN }))
    }
    const [, seconds] = /^TimeoutStopSec=(\d+)s$/m.exec(read('deploy/systemd/berth.service')) ?? []
    expect(Number(seconds) * 1_000).toBeGreaterThanOrEqual(stopMs({}))
  })

  test('so does the chart, and refuses less', () => {
    const names = read('deploy/helm/berth/templates/_names.tpl')
    const closing = /add \(include "berth.seconds" [^)]*\) \(include "berth.seconds" [^)]*\) (\d+)/.exec(names)?.[1]
    expect(Number(closing) * 1_000).toBe(closingMs)
    expect(names).toContain('lt (int64 .Values.terminationGracePeriodSeconds) $needed')
  })

  test('in the chart, readiness is told before the port closes', () => {
    const deployment = read('deploy/helm/berth/templates/deployment.yaml')
    const probe = /readinessProbe:[\s\S]*?periodSeconds: (\d+)[\s\S]*?failureThreshold: (\d+)/.exec(deployment) ?? []
    const toldAfterMs = Number(probe[1]) * Number(probe[2]) * 1_000
    expect(toldAfterMs).toBeGreaterThan(0)
    const delay = parseDuration(String(mapAt(values, 'config', 'server')['shutdown_delay'])) ?? 0
    expect(delay).toBeGreaterThan(toldAfterMs)
  })
})

describe('proxies', () => {
  const nginx = read('deploy/proxy/nginx.conf')

  test('nginx.conf says what docs/how-to/deploy.md says, and nginx-compose.conf what nginx.conf says', () => {
    const page = read('docs/how-to/deploy.md')
    const snippet = /```nginx\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
    expect(nginxDirectives(snippet).size).toBeGreaterThan(7)
    expect(findNginxDifferences(snippet, nginx)).toEqual([])
    expect(findNginxDifferences(nginx, read('deploy/proxy/nginx-compose.conf'))).toEqual([])
    expect(findNginxDifferences(read('deploy/proxy/nginx-compose.conf'), nginx)).toEqual([])
  })

  test('a directive that differs is found', () => {
    const wanted = 'proxy_pass http://a;\nproxy_buffering off;\nproxy_set_header Host $http_host;\n'
    const actual = 'proxy_pass http://b;\nproxy_buffering on;\nproxy_set_header Host $host;\n'
    expect(findNginxDifferences(wanted, actual)).toEqual(['proxy_buffering off', 'proxy_set_header Host $http_host'])
  })

  test.each([
    ['nginx.conf', /^\s*keepalive_timeout (\w+);/],
    ['nginx-compose.conf', /^\s*keepalive_timeout (\w+);/],
    ['haproxy.cfg', /pool-purge-delay (\w+)/],
    ['Caddyfile', /^\s*keepalive (\w+)$/],
    ['traefik-berth.yaml', /idleConnTimeout: (\w+)/],
  ])('%s closes idle connections before Berth does', (file, pattern) => {
    expect(findLateConnections(read(`deploy/proxy/${file}`), pattern)).toEqual([])
  })

  test('a connection that is kept too long is found', () => {
    expect(findLateConnections('keepalive_timeout 60s;', /^\s*keepalive_timeout (\w+);/)).toEqual(['60s'])
    expect(findLateConnections('', /idle (\w+)/)).toHaveLength(1)
  })

  test('where a proxy asks actively, it asks /readyz', () => {
    expect(read('deploy/proxy/haproxy.cfg')).toContain('http-check send meth GET uri /readyz')
    expect(read('deploy/proxy/Caddyfile')).toContain('health_uri /readyz')
    const traefik = Bun.YAML.parse(read('deploy/proxy/traefik-berth.yaml'))
    expect(mapAt(traefik, 'http', 'services', 'berth', 'loadBalancer', 'healthCheck')['path']).toBe('/readyz')
    // Its default is 60 s for a whole request.
    const transport = mapAt(Bun.YAML.parse(read('deploy/proxy/traefik.yaml')), 'entryPoints', 'websecure', 'transport')
    expect(mapAt(transport, 'respondingTimeouts')['readTimeout']).toBe('0s')
  })
})

describe('the chart', () => {
  test('its schema knows each value, and no other', () => {
    const schema: unknown = JSON.parse(read('deploy/helm/berth/values.schema.json'))
    expect(findSchemaGaps(values, schema)).toEqual([])
    expect(findSchemaGaps({ a: { b: 1 } }, { properties: { a: { properties: { c: {} } }, d: {} } })).toEqual([
      'd',
      'a.b',
      'a.c',
    ])
  })

  test('there is nothing to scrape yet, and it says so', () => {
    expect(mapAt(values, 'serviceMonitor')['enabled']).toBe(false)
    expect(read('deploy/helm/berth/values.yaml')).toContain('Berth has no metrics endpoint yet')
  })
})
