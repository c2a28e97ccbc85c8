// Renders the chart. Run by deploy/helm/check.sh, where helm is; `npm test` holds what needs no helm in deploy-files.test.ts.
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/app/config.ts'
import { type CommandResult, runCommand } from '../support/basics/command.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import { isRecord, mapAt } from './deploy-rules.ts'

const makeFolder = useTemporaryFolders('chart')
const chart = join(projectRoot, 'deploy', 'helm', 'berth')
type Document = Record<string, unknown>

/** Enough for two replicas. */
const shared = {
  image: { repository: 'registry.example.com/berth' },
  database: { existingSecret: 'berth-database' },
  config: { storage: { s3: { bucket: 'images' } } },
}
/** Enough for one replica with a volume. */
const single = { image: shared.image, replicaCount: 1 }

/** The second over the first, map by map. */
function merge(below: Document, above: Document): Document {
  const merged = Object.entries(above).map(([name, value]) => {
    const under = below[name]
    return [name, isRecord(under) && isRecord(value) ? merge(under, value) : value]
  })
  return { ...below, ...Object.fromEntries(merged) }
}

function helm(verb: readonly string[], values: Document): Promise<CommandResult> {
  const file = join(makeFolder(), 'values.yaml')
  writeFileSync(file, JSON.stringify(values))
  const argv = ['helm', ...verb, chart, '--kube-version', '1.31.0', '--values', file]
  return runCommand(argv, { env: { PATH: process.env['PATH'] ?? '', HOME: makeFolder() }, mayFail: true })
}

async function render(values: Document): Promise<readonly Document[]> {
  const { code, stdout, output } = await helm(
    ['template', 'images', '--api-versions', 'monitoring.coreos.com/v1'],
    values,
  )
  if (code !== 0) throw new Error(output)
  const parsed: unknown = Bun.YAML.parse(stdout)
  return (Array.isArray(parsed) ? parsed : [parsed]).filter(isRecord)
}

async function refusalOf(values: Document): Promise<string> {
  const { code, output } = await helm(['template', 'images'], values)
  expect(code).not.toBe(0)
  return output
}

function kindsOf(documents: readonly Document[]): string[] {
  return documents.map(({ kind }) => String(kind)).toSorted()
}

function only(documents: readonly Document[], kind: string): Document {
  const found = documents.filter((document) => document['kind'] === kind)
  if (found[0] === undefined || found.length > 1) throw new Error(`${found.length} of ${kind}`)
  return found[0]
}

function podOf(documents: readonly Document[], kind = 'Deployment'): Document {
  return mapAt(only(documents, kind), 'spec', 'template', 'spec')
}

function containerOf(pod: Document): Document {
  const [container] = Array.isArray(pod['containers']) ? pod['containers'] : []
  return mapAt(container)
}

const fromSecret = 'from the Secret '

/** Name -> value, or the Secret that it comes from. */
function environmentOf(container: Document): Record<string, string> {
  const entries = Array.isArray(container['env']) ? container['env'].map((entry) => mapAt(entry)) : []
  const told = entries.map((entry) => {
    if (typeof entry['value'] === 'string') return [String(entry['name']), entry['value']]
    const { name, key } = mapAt(entry, 'valueFrom', 'secretKeyRef')
    return [String(entry['name']), `${fromSecret}${String(name)}/${String(key)}`]
  })
  return Object.fromEntries(told)
}

/** What Berth makes of the pod's file and variables; the secrets stand in for themselves. */
function configOf(documents: readonly Document[], secrets: Readonly<Record<string, string>> = {}) {
  const map = documents.find(({ kind, metadata }) => kind === 'ConfigMap' && mapAt(metadata)['name'] === 'images-berth')
  const file = join(makeFolder(), 'berth.yaml')
  writeFileSync(file, String(mapAt(map, 'data')['berth.yaml']))
  const environment = environmentOf(containerOf(podOf(documents)))
  const known = Object.entries(environment).filter(([, value]) => !value.startsWith(fromSecret))
  return readConfig(file, { ...Object.fromEntries(known), ...secrets })
}

describe('the chart', () => {
  const cases: readonly (readonly [string, Document])[] = [
    ['two replicas', shared],
    ['one with a volume', single],
    [
      'everything',
      merge(shared, {
        s3: { existingSecret: 'berth-s3' },
        admin: { existingSecret: 'berth-admin' },
        ingress: { enabled: true, host: 'registry.example.com', className: 'nginx', tls: { secretName: 'tls' } },
        migrationJob: { enabled: true },
        autoscaling: { enabled: true },
        serviceMonitor: { enabled: true },
        serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::123456789012:role/berth' } },
        extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/ca/ca.crt' }],
        extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
        extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca' }],
        nodeSelector: { disk: 'ssd' },
        tolerations: [{ key: 'a', operator: 'Exists' }],
        podAnnotations: { a: 'b' },
        podLabels: { c: 'd' },
        imagePullSecrets: [{ name: 'pull' }],
      }),
    ],
  ]
  for (const [name, values] of cases) {
    test(`passes the strict lint: ${name}`, async () => {
      const { code, output } = await helm(['lint', '--strict'], values)
      expect(output).toContain('0 chart(s) failed')
      expect(code).toBe(0)
    })
  }

  test('two replicas: no volume to keep, no secret in sight, and settings that Berth takes', async () => {
    const documents = await render(shared)
    expect(kindsOf(documents)).toEqual(['ConfigMap', 'Deployment', 'PodDisruptionBudget', 'Service', 'ServiceAccount'])
    const pod = podOf(documents)
    expect(JSON.stringify(pod['volumes'])).not.toContain('persistentVolumeClaim')
    expect(mapAt(only(documents, 'Deployment'), 'spec')['replicas']).toBe(2)
    const strategy = mapAt(only(documents, 'Deployment'), 'spec', 'strategy', 'rollingUpdate')
    expect(strategy).toEqual({ maxUnavailable: 0, maxSurge: 1 })
    const config = configOf(documents, { BERTH_METADATA__URL: 'postgres://berth@db/berth' })
    expect(config.bucket).toBe('images')
    expect(config.host).toBe('0.0.0.0')
    expect(pod['terminationGracePeriodSeconds']).toBeGreaterThan((config.shutdownDelayMs + config.drainMs) / 1_000)
  })

  test('everything: each part once, and the secrets by reference', async () => {
    const documents = await render(cases[2]?.[1] ?? {})
    expect(kindsOf(documents)).toEqual([
      'ConfigMap',
      'ConfigMap',
      'Deployment',
      'HorizontalPodAutoscaler',
      'Ingress',
      'Job',
      'PodDisruptionBudget',
      'Service',
      'ServiceAccount',
      'ServiceMonitor',
    ])
    const environment = environmentOf(containerOf(podOf(documents)))
    expect(environment).toEqual({
      BERTH_SERVER__HOST: '0.0.0.0',
      BERTH_SERVER__PORT: '5000',
      BERTH_DATA_DIR: '/var/lib/berth',
      BERTH_METADATA__MIGRATE: 'manual',
      BERTH_METADATA__URL: `${fromSecret}berth-database/url`,
      BERTH_STORAGE__S3__ACCESS_KEY_ID: `${fromSecret}berth-s3/access_key_id`,
      BERTH_STORAGE__S3__SECRET_ACCESS_KEY: `${fromSecret}berth-s3/secret_access_key`,
      BERTH_IDENTITY__ADMIN_API_KEY: `${fromSecret}berth-admin/api_key`,
      BERTH_IDENTITY__ADMIN_PASSWORD: `${fromSecret}berth-admin/password`,
      NODE_EXTRA_CA_CERTS: '/etc/ca/ca.crt',
    })
    // An unknown variable, or one that contradicts another, would keep Berth from starting.
    const config = configOf(documents, {
      BERTH_METADATA__URL: 'postgres://berth@db/berth',
      BERTH_STORAGE__S3__ACCESS_KEY_ID: 'id',
      BERTH_STORAGE__S3__SECRET_ACCESS_KEY: 'key',
    })
    expect(config.migrate).toBe('manual')
    expect(mapAt(only(documents, 'Deployment'), 'spec')).not.toHaveProperty('replicas')
    const job = containerOf(podOf(documents, 'Job'))
    expect(job['args']).toEqual(['migrate'])
    const selector = mapAt(only(documents, 'Service'), 'spec', 'selector')
    const jobLabels = mapAt(only(documents, 'Job'), 'spec', 'template', 'metadata', 'labels')
    expect(Object.entries(selector).every(([name, value]) => jobLabels[name] === value)).toBe(false)
    const podLabels = mapAt(only(documents, 'Deployment'), 'spec', 'template', 'metadata', 'labels')
    expect(podLabels).toMatchObject(selector)
  })

  test('one replica: a volume, and never two pods on it', async () => {
    const documents = await render(single)
    expect(kindsOf(documents)).toEqual([
      'ConfigMap',
      'Deployment',
      'PersistentVolumeClaim',
      'Service',
      'ServiceAccount',
    ])
    expect(mapAt(only(documents, 'Deployment'), 'spec')['strategy']).toEqual({ type: 'Recreate' })
    expect(configOf(documents).bucket).toBeUndefined()
    const halves = [{ database: shared.database }, { config: shared.config }]
    for (const half of halves) expect(kindsOf(await render(merge(single, half)))).toContain('PersistentVolumeClaim')
    const mine = await render(merge(single, { persistence: { existingClaim: 'mine' } }))
    expect(kindsOf(mine)).not.toContain('PersistentVolumeClaim')
    expect(JSON.stringify(podOf(mine)['volumes'])).toContain('"claimName":"mine"')
  })

  test('each pod runs without rights, without a writable root, and without links to services', async () => {
    const documents = await render(cases[2]?.[1] ?? {})
    for (const kind of ['Deployment', 'Job']) {
      const pod = podOf(documents, kind)
      expect(pod).toMatchObject({ enableServiceLinks: false, automountServiceAccountToken: false })
      expect(pod['securityContext']).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      expect(containerOf(pod)['securityContext']).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
    const { livenessProbe, readinessProbe, startupProbe } = containerOf(podOf(documents))
    expect(mapAt(livenessProbe, 'httpGet')['path']).toBe('/healthz')
    expect(mapAt(readinessProbe, 'httpGet')['path']).toBe('/readyz')
    expect(mapAt(startupProbe, 'httpGet')['path']).toBe('/healthz')
  })

  const graces: readonly (readonly [string, string, number])[] = [
    ['12s', '60s', 87],
    ['1500ms', '2m', 137],
    ['0s', '1h', 3615],
  ]
  for (const [delay, drain, seconds] of graces) {
    test(`the grace period for a delay of ${delay} and a drain of ${drain} is ${seconds} seconds`, async () => {
      const documents = await render(merge(shared, { config: { server: { shutdown_delay: delay, drain } } }))
      expect(podOf(documents)['terminationGracePeriodSeconds']).toBe(seconds)
    })
  }

  test('new settings are new pods', async () => {
    const checksum = async (values: Document) => {
      const deployment = only(await render(values), 'Deployment')
      return mapAt(deployment, 'spec', 'template', 'metadata', 'annotations')['checksum/config']
    }
    const before = await checksum(shared)
    expect(before).toMatch(/^[0-9a-f]{64}$/)
    expect(await checksum(merge(shared, { config: { log: { level: 'debug' } } }))).not.toBe(before)
  })

  test('takes a grace period that is just enough', async () => {
    const documents = await render(merge(shared, { terminationGracePeriodSeconds: 82 }))
    expect(podOf(documents)['terminationGracePeriodSeconds']).toBe(82)
  })

  const refused: readonly (readonly [string, Document, string])[] = [
    ['no image', merge(shared, { image: { repository: '' } }), 'image.repository'],
    ['two replicas without PostgreSQL', merge(shared, { database: { existingSecret: '' } }), 'more than one replica'],
    [
      'two replicas without S3',
      merge(shared, { config: { storage: { s3: { bucket: '' } } } }),
      'more than one replica',
    ],
    ['autoscaling over a volume', merge(single, { autoscaling: { enabled: true } }), 'more than one replica'],
    ['a grace period that is too short', merge(shared, { terminationGracePeriodSeconds: 81 }), '82 seconds'],
    ['a drain in no unit', merge(shared, { config: { server: { drain: '60 parsecs' } } }), 'drain'],
    ['a password in the settings', merge(shared, { config: { metadata: { url: 'postgres://a:b@c/d' } } }), 'secrets'],
    ['a key in the settings', merge(shared, { config: { identity: { admin_api_key: 'a'.repeat(20) } } }), 'secrets'],
    ['a token in the settings', merge(shared, { config: { storage: { s3: { credentials_token: 'x' } } } }), 'secrets'],
    ['a port in the settings', merge(shared, { config: { server: { port: 80 } } }), "the chart's own"],
    ['keys for S3 without a bucket', merge(single, { s3: { existingSecret: 'x' } }), 's3.existingSecret'],
    ['a Job for SQLite', merge(single, { migrationJob: { enabled: true } }), 'migrationJob'],
    ['an Ingress without a name', merge(shared, { ingress: { enabled: true } }), 'ingress.host'],
    ['a value that is none', merge(shared, { replicas: 3 }), 'replicas'],
  ]
  for (const [name, values, word] of refused) {
    test(`refuses ${name}`, async () => expect(await refusalOf(values)).toContain(word))
  }
})
