// Several replicas of Berth on one database and one bucket, as they would stand on several machines: each a process of its
// own, with a folder of its own in which no data is kept.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../basics/child-server.ts'
import { testAdminPassword, testApiKey } from '../basics/test-project.ts'
import { checkBlob, type Target } from '../clients/registry-client.ts'
import { type BerthProcess, startBerth } from '../server/berth-process.ts'
import { type NginxServer, startNginx } from './nginx-server.ts'
import { openSharedStores, type SharedStores } from './shared-stores.ts'

type Settings = Readonly<Record<string, string>>

/** One of them; whatever becomes of its process, it comes back at the same address. */
export class Replica {
  readonly url: string
  readonly #settings: Settings
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'berth-replica-'))
  #process: BerthProcess | undefined
  #printed = ''

  constructor(port: number, settings: Settings) {
    this.url = `http://127.0.0.1:${port}`
    this.#settings = { ...settings, BERTH_SERVER__PORT: String(port) }
  }

  async start(): Promise<void> {
    this.#process = await startBerth({ dataDir: this.#dataDir, settings: this.#settings })
  }

  /** SIGTERM; gives the exit code. */
  async stop(): Promise<number> {
    const code = await this.#running.stop()
    this.#forget()
    return code
  }

  /** SIGKILL: a crash. */
  async kill(): Promise<void> {
    await this.#running.kill()
    this.#forget()
  }

  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  /** All that its processes have printed. */
  output(): string {
    return this.#printed + (this.#process?.output() ?? '')
  }

  get pid(): number {
    return this.#running.pid
  }

  async remove(): Promise<void> {
    if (this.#process !== undefined) await this.stop()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }

  get #running(): BerthProcess {
    if (this.#process === undefined) throw new Error(`the replica at ${this.url} does not run`)
    return this.#process
  }

  #forget(): void {
    this.#printed = this.output()
    this.#process = undefined
  }
}

export interface Replicas {
  readonly stores: SharedStores
  readonly all: readonly Replica[]
  readonly a: Replica
  readonly b: Replica
  stop(): Promise<void>
}

/** As both replicas serve the blob: `whole`, or what is wrong. */
export async function checkAtBoth(
  { a, b }: Readonly<Record<'a' | 'b', Target>>,
  repository: string,
  digest: string,
): Promise<string> {
  const [atA, atB] = [await checkBlob(a, repository, digest), await checkBlob(b, repository, digest)]
  return atA === atB ? atB : `${atA} at one, ${atB} at the other`
}

export interface ReplicaOptions {
  readonly settings?: Settings
  /** What only the first of them is told. */
  readonly settingsOfA?: Settings
  /** Where they find S3: a proxy in front of it. */
  readonly s3Url?: string
}

/** Two of them, begun at the same moment on stores in which there is nothing yet. */
export async function startReplicas(options: ReplicaOptions = {}): Promise<Replicas> {
  const stores = await openSharedStores(options.s3Url === undefined ? {} : { s3Url: options.s3Url })
  const settings = { ...stores.settings, BERTH_GARBAGE__EVERY: '0s', ...options.settings }
  const [portOfA = 0, portOfB = 0] = await freePorts(2)
  const a = new Replica(portOfA, { ...settings, ...options.settingsOfA })
  const b = new Replica(portOfB, settings)
  const all = [a, b]
  const stop = async () => {
    await Promise.all(all.map((replica) => replica.remove()))
    await stores.close()
  }
  try {
    await Promise.all(all.map((replica) => replica.start()))
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
  return { stores, all, a, b, stop }
}

export interface BalancedReplicas extends BerthProcess {
  readonly replicas: Replicas
  readonly balancer: NginxServer
}

/** Two of them behind an nginx, each request to the next: for clients that see them as one server. */
export async function startBalancedReplicas(settings: Settings = {}): Promise<BalancedReplicas> {
  const trusting = { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', ...settings }
  const replicas = await startReplicas({ settings: trusting })
  const balancer = await startNginx(replicas.all.map(({ url }) => url))
  const stopAll = async () => {
    await balancer.stop()
    await replicas.stop()
  }
  return {
    url: balancer.url,
    host: balancer.url.slice('http://'.length),
    apiKey: settings['BERTH_IDENTITY__ADMIN_API_KEY'] ?? testApiKey,
    adminPassword: testAdminPassword,
    pid: replicas.a.pid,
    dataDir: '',
    replicas,
    balancer,
    output: () => replicas.all.map((replica) => replica.output()).join(''),
    async stop() {
      await stopAll()
      return 0
    },
    kill: stopAll,
  }
}
