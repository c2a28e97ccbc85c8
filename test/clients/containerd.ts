import { expect } from 'bun:test'
import { type CommandResult, Workspace } from '../support/basics/command.ts'
import { useRunning } from '../support/basics/running.ts'
import { compareContent, layoutSource, readContent, registrySource } from '../support/clients/image-content.ts'
import { makeImage, OciLayout } from '../support/clients/oci-layout.ts'
import type { BerthProcess } from '../support/server/berth-process.ts'
import { type AnonymousClient, expectRefused, withOpenServer } from './anonymous.ts'
import { describeClient, prove } from './client-suite.ts'
import { startContainerd } from './daemons.ts'
import { bearerToken, type Servers, wrongKey } from './servers.ts'

const prefix = '/api/2023-12-28'
const tools = ['containerd', 'ctr', 'tar'] as const

const attemptsMax = 3
/** Of the connection between the two on this machine: a registry speaks no gRPC. */
const lostContainerd = 'rpc error: code = Internal desc = unexpected EOF'
/** containerd 1.6 panics if a part of the push fails while another one begins, and then does not say what failed. */
const panic = 'panic: send on closed channel'

/** One containerd with an image and an index in it, and a server that it reaches through `hosts.toml`. */
export class ContainerdRun {
  readonly berth: BerthProcess
  /** What stands before `/v2/`: nothing, or the prefix. */
  readonly mount: string
  readonly workspace = new Workspace('containerd')
  readonly layout = new OciLayout(this.workspace.path('layout'))
  readonly source = layoutSource(this.layout.folder)

  readonly #toStop: (() => Promise<unknown>)[]

  private constructor(berth: BerthProcess, mount: string, toStop: (() => Promise<unknown>)[]) {
    this.berth = berth
    this.mount = mount
    this.#toStop = toStop
    this.layout.addImage('single', makeImage(3))
    this.layout.addIndex('multi', [makeImage(2), makeImage(2, 'arm64')])
  }

  /** Imports the layout as `made:single` and `made:multi`, and names the server under its mount. */
  static async start(
    berth: BerthProcess,
    mount: string,
    ...toStop: (() => Promise<unknown>)[]
  ): Promise<ContainerdRun> {
    const run = new ContainerdRun(berth, mount, toStop)
    const daemon = await startContainerd(run.workspace)
    toStop.unshift(() => daemon.stop())
    await run.nameServer(berth)
    const archive = run.workspace.path('layout.tar')
    await run.workspace.run(['tar', '-C', run.layout.folder, '-cf', archive, '.'])
    await run.ctr('images', 'import', '--no-unpack', '--all-platforms', '--base-name', 'made', archive)
    return run
  }

  async stop(): Promise<void> {
    for (const stop of this.#toStop) await stop()
    this.workspace.remove()
  }

  ctr(...args: string[]) {
    return this.workspace.run(this.argv(...args))
  }

  /**
   * In about one push of a hundred `ctr` loses its own containerd while it reads a layer from there, whichever registry the
   * layer is for (seen with Debian's docker-registry, too). That, and nothing else, is tried again.
   */
  async push(access: readonly string[], image: string, name: string): Promise<CommandResult> {
    const argv = this.argv('images', 'push', ...access, image, name)
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.workspace.run(argv, { mayFail: true })
      if (result.output.includes(panic)) return { ...result, output: result.output + (await this.#refusals(image)) }
      if (attempt === attemptsMax || !result.output.includes(lostContainerd)) return result
      console.warn(`ctr lost its containerd while it pushed ${image}; attempt ${attempt} of ${attemptsMax}`)
    }
  }

  /** The requests of a push that the server refused. None: ctr lost its containerd, or the proxy refused one. */
  async #refusals(image: string): Promise<string> {
    // The log is written in batches.
    await Bun.sleep(500)
    const path = `/v2/${image.slice(image.indexOf('/') + 1, image.lastIndexOf(':'))}/`
    const lines = this.berth.output().split('\n')
    const refused = lines.filter((line) => line.includes(path) && /"status":(?!401|404)[45]/.test(line))
    return `\nrefused by the server:\n${refused.join('\n')}`
  }

  argv(...args: string[]): string[] {
    return ['ctr', '--address', this.workspace.path('containerd.sock'), ...args]
  }

  remote(image: string): string {
    return `${this.berth.host}/${image}`
  }

  access(secret: string, user = 'apikey'): string[] {
    return [...this.anonymous(), '--user', `${user}:${secret}`]
  }

  anonymous(): string[] {
    return ['--hosts-dir', this.workspace.path('hosts')]
  }

  pushed(repository: string) {
    return registrySource(this.berth.url + this.mount, this.berth.apiKey, repository)
  }

  async nameServer({ url, host }: BerthProcess): Promise<void> {
    const address = url + this.mount
    const hosts = `server = '${address}'\n[host.'${address}']\n  capabilities = ['pull', 'resolve', 'push']\n`
    await Bun.write(this.workspace.path(`hosts/${host}/hosts.toml`), hosts)
  }

  /** Pulls into a namespace that holds nothing yet, and gives what containerd itself exports from there. */
  async pullAndExport(image: string, access: readonly string[]) {
    const tag = image.slice(image.lastIndexOf(':') + 1)
    const namespace = image.replaceAll(/[^a-z0-9]/g, '-')
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
export function containerdTests(servers: Servers): void {
  const { challenge } = servers
  for (const mount of ['', prefix]) {
    const start = async () => {
      if (mount === '') return ContainerdRun.start(servers.shared(), mount)
      const own = await servers.startOther({ BERTH_REGISTRY__ROOT_MOUNT: 'false' })
      return ContainerdRun.start(own, mount, () => own.stop())
    }
    const client = `containerd ${mount === '' ? 'at the root' : `under ${prefix}`}`
    let run: ContainerdRun
    describeClient({ client, tools, challenge, berth: () => run.berth }, () => {
      run = useRunning(start)
      proveRefusals(run)
      proveCopies(run)
      proveAnonymous(run, servers)
    })
  }
}

function proveRefusals(run: ContainerdRun): void {
  prove('a push with a wrong key is refused as unauthorized', async () => {
    const { code, output } = await run.push(run.access(wrongKey()), run.remote('ctr/wrong-key:1'), 'made:single')
    expect(code).not.toBe(0)
    expect(output).toContain('401 Unauthorized')
  })

  prove('a pull with a wrong key is refused as unauthorized', async () => {
    const pull = run.argv('images', 'pull', ...run.access(wrongKey()), run.remote('ctr/wrong-key:1'))
    const { code, output } = await run.workspace.run(pull, { mayFail: true })
    expect(code).not.toBe(0)
    expect(output).toContain('401 Unauthorized')
  })
}

function expectPushed({ code, output }: CommandResult): void {
  if (code !== 0) throw new Error(`the push ended with ${code}:\n${output}`)
}

function proveCopies(run: ContainerdRun): void {
  prove('an image goes up and comes back byte for byte', async () => {
    const access = run.access(run.berth.apiKey)
    expectPushed(await run.push(access, run.remote('ctr/single:1'), 'made:single'))
    const expected = await readContent(run.source, 'single')
    compareContent(expected, await readContent(run.pushed('ctr/single'), '1'))
    compareContent(expected, await run.pullAndExport(run.remote('ctr/single:1'), access))
  })

  prove('an image is pushed and pulled with an access token', async () => {
    const access = run.access(await bearerToken(run.berth), 'bearer')
    expectPushed(await run.push(access, run.remote('ctr/bearer:1'), 'made:single'))
    const expected = await readContent(run.source, 'single')
    compareContent(expected, await run.pullAndExport(run.remote('ctr/bearer:1'), access))
  })

  prove('an index over two platforms goes up and comes back byte for byte', async () => {
    const access = run.access(run.berth.apiKey)
    expectPushed(await run.push(access, run.remote('ctr/multi:1'), 'made:multi'))
    const expected = await readContent(run.source, 'multi')
    compareContent(expected, await readContent(run.pushed('ctr/multi'), '1'))
    compareContent(expected, await run.pullAndExport(run.remote('ctr/multi:1'), access))
  })

  prove('a second push of the same image succeeds', async () => {
    const access = run.access(run.berth.apiKey)
    expectPushed(await run.push(access, run.remote('ctr/single:1'), 'made:single'))
    compareContent(await readContent(run.source, 'single'), await readContent(run.pushed('ctr/single'), '1'))
  })
}

function proveAnonymous(run: ContainerdRun, servers: Servers): void {
  prove('an anonymous client pulls only public repositories, and pushes nothing', async () => {
    const [image, folder] = [makeImage(2), run.workspace.path('open')]
    const pullOf = (name: string) => run.argv('images', 'pull', ...run.anonymous(), '--snapshotter', 'native', name)
    const anonymous: AnonymousClient = {
      pull: (name) => run.workspace.run(pullOf(name), { mayFail: true }),
      push: (name) => run.push(run.anonymous(), name, 'made:single'),
    }
    await withOpenServer(servers, { folder, image }, async (berth) => {
      await run.nameServer(berth)
      const pulled = await run.pullAndExport(`${berth.host}/public/x:1`, run.anonymous())
      compareContent(await readContent(layoutSource(folder), '1'), pulled)
      await expectRefused(anonymous, berth, /authoriz|401 Unauthorized/)
    })
  })
}
