import { afterAll, beforeAll, expect } from 'bun:test'
import { type BerthProcess, startBerth } from '../support/berth-process.ts'
import { Workspace } from '../support/command.ts'
import { compareContent, layoutSource, readContent, registrySource } from '../support/image-content.ts'
import { makeImage, OciLayout } from '../support/oci-layout.ts'
import type { ClientMatrix } from './client-matrix.ts'
import { clientSuite, hookTimeoutMs, type Prove } from './client-suite.ts'
import { type Daemon, startContainerd } from './daemons.ts'
import { type BerthOf, wrongKey } from './servers.ts'

const prefix = '/api/2023-12-28'
const tools = ['containerd', 'ctr', 'tar'] as const
/** `ctr` takes its credentials with each command; there is no login to keep them. */
const verbs = ['push', 'pull', 'multi-arch'] as const

/** One containerd with an image and an index in it, and a server that it reaches through `hosts.toml`. */
class ContainerdRun {
  readonly berth: BerthProcess
  /** What stands before `/v2/`: nothing, or the prefix. */
  readonly mount: string
  readonly workspace = new Workspace('containerd')
  readonly layout = new OciLayout(this.workspace.path('layout'))
  readonly source = layoutSource(this.layout.folder)

  constructor(berth: BerthProcess, mount: string) {
    this.berth = berth
    this.mount = mount
    this.layout.addImage('single', makeImage(3))
    this.layout.addIndex('multi', [makeImage(2), makeImage(2, 'arm64')])
  }

  ctr(...args: string[]) {
    return this.workspace.run(this.argv(...args))
  }

  argv(...args: string[]): string[] {
    return ['ctr', '--address', this.workspace.path('containerd.sock'), ...args]
  }

  remote(image: string): string {
    return `${this.berth.host}/${image}`
  }

  access(key: string): string[] {
    return ['--hosts-dir', this.workspace.path('hosts'), '--user', `apikey:${key}`]
  }

  pushed(repository: string) {
    return registrySource(this.berth.url + this.mount, this.berth.apiKey, repository)
  }

  /** Imports the layout as `made:single` and `made:multi`, and names the server under its mount. */
  async prepare(): Promise<void> {
    const address = this.berth.url + this.mount
    const hosts = `server = '${address}'\n[host.'${address}']\n  capabilities = ['pull', 'resolve', 'push']\n`
    await Bun.write(this.workspace.path(`hosts/${this.berth.host}/hosts.toml`), hosts)
    const archive = this.workspace.path('layout.tar')
    await this.workspace.run(['tar', '-C', this.layout.folder, '-cf', archive, '.'])
    await this.ctr('images', 'import', '--no-unpack', '--all-platforms', '--base-name', 'made', archive)
  }

  /** Pulls into a namespace that holds nothing yet, and gives what containerd itself exports from there. */
  async pullAndExport(repository: string, tag: string) {
    const namespace = repository.replaceAll('/', '-')
    const image = this.remote(`${repository}:${tag}`)
    const access = this.access(this.berth.apiKey)
    await this.ctr(
      '--namespace',
      namespace,
      'images',
      'pull',
      '--all-platforms',
      '--snapshotter',
      'native',
      ...access,
      image,
    )
    const archive = this.workspace.path(`${namespace}.tar`)
    await this.ctr('--namespace', namespace, 'images', 'export', '--all-platforms', archive, image)
    return await readContent(layoutSource(await this.workspace.unpack(archive)), tag)
  }
}

/** The same proofs at the root, and under the prefix of a server that has no root mount: so the prefix was used. */
export function containerdSuites(matrix: ClientMatrix, berth: BerthOf): void {
  containerdSuite(matrix, 'containerd at the root', '', async () => ({ berth: berth(), stop: async () => {} }))
  containerdSuite(matrix, `containerd under ${prefix}`, prefix, async () => {
    const own = await startBerth({ settings: { BERTH_REGISTRY__ROOT_MOUNT: 'false' } })
    return { berth: own, stop: async () => void (await own.stop()) }
  })
}

interface Server {
  readonly berth: BerthProcess
  stop(): Promise<void>
}

function containerdSuite(matrix: ClientMatrix, client: string, mount: string, start: () => Promise<Server>): void {
  clientSuite(matrix, { client, tools, verbs }, (prove) => {
    let server: Server | undefined
    let started: ContainerdRun | undefined
    let daemon: Daemon | undefined
    const run = (): ContainerdRun => {
      if (started === undefined) throw new Error('containerd did not start')
      return started
    }
    beforeAll(async () => {
      server = await start()
      started = new ContainerdRun(server.berth, mount)
      daemon = await startContainerd(started.workspace)
      await started.prepare()
    }, hookTimeoutMs)
    afterAll(async () => {
      await daemon?.stop()
      started?.workspace.remove()
      await server?.stop()
    }, hookTimeoutMs)
    proveContainerd(prove, run)
  })
}

function proveContainerd(prove: Prove, run: () => ContainerdRun): void {
  prove('push', 'a push with a wrong key is refused as unauthorized', async () => {
    const push = run().argv('images', 'push', ...run().access(wrongKey), run().remote('ctr/stranger:1'), 'made:single')
    const { code, output } = await run().workspace.run(push, { mayFail: true })
    expect(code).not.toBe(0)
    expect(output).toContain('401 Unauthorized')
  })

  prove('pull', 'a pull with a wrong key is refused as unauthorized', async () => {
    const pull = run().argv('images', 'pull', ...run().access(wrongKey), run().remote('ctr/stranger:1'))
    const { code, output } = await run().workspace.run(pull, { mayFail: true })
    expect(code).not.toBe(0)
    expect(output).toContain('401 Unauthorized')
  })

  prove(['push', 'pull'], 'an image goes up and comes back byte for byte', async () => {
    const access = run().access(run().berth.apiKey)
    await run().ctr('images', 'push', ...access, run().remote('ctr/single:1'), 'made:single')
    const expected = await readContent(run().source, 'single')
    compareContent(expected, await readContent(run().pushed('ctr/single'), '1'))
    compareContent(expected, await run().pullAndExport('ctr/single', '1'))
  })

  prove(
    ['push', 'pull', 'multi-arch'],
    'an index over two platforms goes up and comes back byte for byte',
    async () => {
      const access = run().access(run().berth.apiKey)
      await run().ctr('images', 'push', ...access, run().remote('ctr/multi:1'), 'made:multi')
      const expected = await readContent(run().source, 'multi')
      compareContent(expected, await readContent(run().pushed('ctr/multi'), '1'))
      compareContent(expected, await run().pullAndExport('ctr/multi', '1'))
    },
  )

  prove('push', 'a second push of the same image succeeds', async () => {
    const access = run().access(run().berth.apiKey)
    await run().ctr('images', 'push', ...access, run().remote('ctr/single:1'), 'made:single')
    compareContent(await readContent(run().source, 'single'), await readContent(run().pushed('ctr/single'), '1'))
  })
}
