// A Ceph of one monitor, one store in memory and one gateway, from Debian's packages: what a real S3 server says.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, outlive, type Watch } from '../basics/child-server.ts'
import { missingTools, runCommand } from '../basics/command.ts'
import type { Need } from '../basics/needs.ts'
import { until } from '../clocks/until.ts'
import { createBucket, type S3Server } from './s3-server.ts'

const tools = ['radosgw', 'radosgw-admin', 'ceph-mon', 'ceph-osd', 'ceph', 'ceph-authtool', 'monmaptool']

export function canStartCeph(): Need {
  const missing = missingTools(tools)
  return {
    isMet: missing.length === 0,
    reason: `Ceph is not whole, ${missing.join(', ')} missing: apt-get install --no-install-recommends radosgw ceph-mon ceph-osd ceph-common`,
  }
}

interface Cluster {
  readonly folder: string
  readonly fsid: string
  readonly monitorPorts: readonly number[]
  readonly gatewayPort: number
}

/** All in one folder. Authentication (cephx) must stay on: without it the gateway never starts. */
function configOf({ folder, fsid, monitorPorts: [v2, v1], gatewayPort }: Cluster): string {
  return `[global]
fsid = ${fsid}
mon host = [v2:127.0.0.1:${v2},v1:127.0.0.1:${v1}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = ${folder}/keyring
run dir = ${folder}
admin socket = ${folder}/$name.asok
pid file = ${folder}/$name.pid
log file = ${folder}/$name.log
mon cluster log file = ${folder}/cluster.log
mon data = ${folder}/mon
osd data = ${folder}/osd
rgw data = ${folder}/rgw
crash dir = ${folder}/crash
osd objectstore = memstore
memstore device bytes = 4294967296
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
paxos propose interval = 0.05
paxos min wait = 0.01
auth allow insecure global id reclaim = false
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:${gatewayPort}
rgw thread pool size = 64
`
}

export async function startCeph(): Promise<S3Server> {
  const need = canStartCeph()
  if (!need.isMet) throw new Error(need.reason)
  const folder = mkdtempSync(join(tmpdir(), 'berth-ceph-'))
  const [gatewayPort = 0, ...monitorPorts] = await freePorts(3)
  const cluster = { folder, fsid: randomUUID(), monitorPorts, gatewayPort }
  const watches: Watch[] = []
  const stop = async () => {
    // The folder goes with the first; the last to be started is the first to end.
    for (const watch of watches.reverse()) await watch.end()
  }
  try {
    const keys = await startDaemons(cluster, (child) => watches.push(outlive([child], folder, 'KILL')))
    const server = {
      name: 'ceph' as const,
      version: await findVersion(),
      url: `http://127.0.0.1:${gatewayPort}`,
      region: 'us-east-1',
      bucket: 'ceph-bucket',
      isPathStyle: true,
      ...keys,
      stop,
    }
    await until('the gateway of Ceph answers', () => createBucket(server))
    return server
  } catch (cause) {
    const logs = ['mon.a', 'osd.0', 'client.rgw'].map((name) => lastLines(join(folder, `${name}.log`)))
    await stop()
    throw new Error(`Ceph did not start\n${logs.join('\n')}`, { cause })
  }
}

async function findVersion(): Promise<string> {
  const { stdout } = await runCommand(['radosgw', '--version'], { env: { PATH: process.env['PATH'] ?? '' } })
  return /version (\S+)/.exec(stdout)?.[1] ?? stdout.trim()
}

function lastLines(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').slice(-2_000) : `no ${path}`
}

async function startDaemons(
  cluster: Cluster,
  watch: (child: ChildProcess) => void,
): Promise<Pick<S3Server, 'accessKey' | 'secretKey'>> {
  const { folder, fsid, monitorPorts } = cluster
  const at = (name: string) => join(folder, name)
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, CEPH_CONF: at('ceph.conf'), LC_ALL: 'C.UTF-8' }
  const run = (...argv: string[]) => runCommand(argv, { env, timeoutMs: 60_000 })
  const start = (...argv: [string, ...string[]]) => {
    const [program, ...rest] = argv
    watch(spawn(program, [...rest, '--foreground', '--conf', at('ceph.conf')], { env, cwd: folder, stdio: 'ignore' }))
  }
  for (const name of ['mon', 'osd', 'rgw', 'crash']) mkdirSync(at(name))
  writeFileSync(at('ceph.conf'), configOf(cluster))
  await makeKeyring(at('keyring'), run)
  const [v2, v1] = monitorPorts
  const addresses = `[v2:127.0.0.1:${v2},v1:127.0.0.1:${v1}]`
  await run('monmaptool', '--create', '--fsid', fsid, '--addv', 'a', addresses, at('monmap'))
  // The monitor takes all the keys at its birth, so that none has to be imported.
  await run('ceph-mon', '--mkfs', '-i', 'a', '--monmap', at('monmap'), '--keyring', at('keyring'))
  start('ceph-mon', '-i', 'a')
  const osd = randomUUID()
  await run('ceph', 'osd', 'new', osd)
  await run('ceph-osd', '--mkfs', '-i', '0', '--osd-uuid', osd)
  start('ceph-osd', '-i', '0')
  const accessKey = randomBytes(10).toString('hex').toUpperCase()
  const secretKey = randomBytes(20).toString('hex')
  const secrets = ['--access-key', accessKey, '--secret-key', secretKey]
  await run('radosgw-admin', '-n', 'client.rgw', 'user', 'create', '--uid=berth', '--display-name=berth', ...secrets)
  start('radosgw', '-n', 'client.rgw')
  return { accessKey, secretKey }
}

async function makeKeyring(path: string, run: (...argv: string[]) => Promise<unknown>): Promise<void> {
  const rights = {
    'mon.': ['mon', 'allow *'],
    'client.admin': ['mon', 'allow *', 'osd', 'allow *', 'mgr', 'allow *', 'mds', 'allow *'],
    'client.rgw': ['mon', 'allow rwx', 'osd', 'allow rwx', 'mgr', 'allow rw'],
    'osd.0': ['mon', 'allow profile osd', 'osd', 'allow *', 'mgr', 'allow profile osd'],
  }
  const create: readonly string[] = ['--create-keyring']
  for (const [index, [name, caps]] of Object.entries(rights).entries()) {
    const pairs = caps.flatMap((word, at) => (at % 2 === 0 ? ['--cap', word] : [word]))
    await run('ceph-authtool', path, ...(index === 0 ? create : []), '--gen-key', '-n', name, ...pairs)
  }
}
