// Podman and buildah share their storage and most of their commands, and so most of their proofs.
import { expect } from 'bun:test'
import { Workspace } from '../support/basics/command.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  checkContent,
  layoutSource,
  parseManifest,
  readContent,
  readUnpacked,
  registrySource,
  type UnpackedImage,
} from '../support/clients/image-content.ts'
import { type Image, imageMediaTypes, makeImage, makeLayer, OciLayout } from '../support/clients/oci-layout.ts'
import { type AnonymousClient, expectRefused, withOpenServer } from './anonymous.ts'
import { describeClient, prove } from './client-suite.ts'
import { makeDockerArchive, unpackedImage } from './docker-archive.ts'
import { type BerthOf, logins, type Servers, wrongKey } from './servers.ts'

type Program = 'podman' | 'buildah'

class StorageRun {
  readonly program: Program
  readonly berth: BerthOf
  readonly workspace: Workspace
  readonly layout: OciLayout
  readonly images: readonly [Image, Image] = [makeImage(3), makeImage(2, 'arm64')]

  constructor(program: Program, berth: BerthOf) {
    this.program = program
    this.berth = berth
    this.workspace = new Workspace(program)
    this.layout = new OciLayout(this.workspace.path('layout'))
    for (const image of this.images) this.layout.addImage(image.platform.architecture, image)
  }

  async stop(): Promise<void> {
    this.workspace.remove()
  }

  /** The program with its storage, and nothing else of it, in the workspace. */
  argv(...args: string[]): string[] {
    const { workspace } = this
    const storage = [
      '--root',
      workspace.path('storage'),
      '--runroot',
      workspace.path('storage-run'),
      '--storage-driver',
      'vfs',
    ]
    const engine = ['--tmpdir', workspace.path('engine'), '--network-config-dir', workspace.path('networks')]
    const cgroups = ['--cgroup-manager', 'cgroupfs', '--events-backend', 'none']
    return [this.program, ...storage, ...(this.program === 'podman' ? [...engine, ...cgroups] : []), ...args]
  }

  command(...args: string[]) {
    return this.workspace.run(this.argv(...args))
  }

  login(user: string, secret: string, mayFail = false) {
    const argv = this.argv('login', '--tls-verify=false', '-u', user, '--password-stdin', this.berth().host)
    return this.workspace.run(argv, { input: secret, mayFail })
  }

  remote(image: string): string {
    return `${this.berth().host}/${this.program}/${image}`
  }

  pushed(repository: string) {
    return registrySource(this.berth().url, this.berth().apiKey, `${this.program}/${repository}`)
  }

  /** Brings a made image into the storage and gives its id. */
  async take(architecture: string): Promise<string> {
    const { stdout } = await this.command(
      'pull',
      '-q',
      '--arch',
      architecture,
      `oci:${this.layout.folder}:${architecture}`,
    )
    return stdout.trim()
  }

  /** Gives the digest that the program says it has pushed. */
  async push(id: string, image: string, ...flags: string[]): Promise<string> {
    const digestFile = this.workspace.path('pushed-digest')
    await this.command('push', '--tls-verify=false', '--digestfile', digestFile, ...flags, id, this.remote(image))
    return await Bun.file(digestFile).text()
  }

  /** Leaves the storage with no image at all, so that a pull must bring everything. */
  async forgetImages(): Promise<void> {
    await this.command('rmi', '--all', '--force')
    expect((await this.command('images', '-q', '-a')).stdout).toBe('')
  }

  /** Pulls into the empty storage, and gives what the program itself writes out from there. */
  pullAndExport(image: string, ...flags: string[]): Promise<UnpackedImage> {
    return this.pullAndExportFrom(this.remote(image), ...flags)
  }

  async pullAndExportFrom(address: string, ...flags: string[]): Promise<UnpackedImage> {
    await this.forgetImages()
    const { stdout } = await this.command('pull', '-q', '--tls-verify=false', ...flags, address)
    const folder = this.workspace.path(`export-${crypto.randomUUID()}`)
    await this.command('push', stdout.trim(), `oci:${folder}:back`)
    return await readUnpacked(layoutSource(folder), 'back')
  }
}

export function storageTests(program: Program, servers: Servers): void {
  const { challenge, shared: berth } = servers
  describeClient({ client: program, tools: [program, 'tar'], challenge, berth }, () => {
    const run = useRunning(async () => new StorageRun(program, berth))
    proveRefusals(run)
    proveLogins(run)
    provePushAndPull(run)
    if (program === 'podman') proveDockerFormat(run)
    else proveBuild(run)
    proveMultiArch(run)
    proveAnonymous(run, servers)
  })
}

function proveRefusals(run: StorageRun): void {
  prove('a wrong key is refused as unauthorized', async () => {
    const { code, output } = await run.login('apikey', wrongKey(), true)
    expect(code).not.toBe(0)
    expect(output).toContain('invalid username/password')
    const id = await run.take('amd64')
    const push = ['push', '--tls-verify=false', '--creds', `apikey:${wrongKey()}`, id, run.remote('wrong-key:1')]
    const refused = await run.workspace.run(run.argv(...push), { mayFail: true })
    expect(refused.code).not.toBe(0)
    expect(refused.output).toContain('unauthorized')
  })
}

function proveLogins(run: StorageRun): void {
  for (const [user, secretOf, title] of logins) {
    prove(`logs in as ${title}, and may then push and pull`, async () => {
      await run.command('logout', '--all')
      expect((await run.login(user, await secretOf(run.berth()))).output).toContain('Login Succeeded')
      const digest = await run.push(await run.take('amd64'), `${user}:1`)
      expect((await readContent(run.pushed(user), '1')).root).toBe(digest)
      expect(await run.pullAndExport(`${user}:1`)).toEqual(unpackedImage(run.images[0]))
    })
  }
}

function provePushAndPull(run: StorageRun): void {
  prove('an image goes up and comes back with the same config and layers', async () => {
    const digest = await run.push(await run.take('amd64'), 'single:1')
    const pushed = await readContent(run.pushed('single'), '1')
    checkContent(pushed)
    expect(pushed.root).toBe(digest)
    expect(await readUnpacked(run.pushed('single'), '1')).toEqual(unpackedImage(run.images[0]))
    expect(await run.pullAndExport('single:1')).toEqual(unpackedImage(run.images[0]))
  })

  prove('a second push changes nothing, and the image comes by its digest too', async () => {
    const before = await readContent(run.pushed('single'), '1')
    const digest = await run.push(await run.take('amd64'), 'single:1')
    expect(await readUnpacked(run.pushed('single'), '1')).toEqual(unpackedImage(run.images[0]))
    expect(digest).toBe(before.root)
    expect(await run.pullAndExport(`single@${digest}`)).toEqual(unpackedImage(run.images[0]))
  })
}

function proveDockerFormat(run: StorageRun): void {
  prove('an image in the docker schema 2 format goes up and comes back', async () => {
    const archive = run.workspace.path('docker.tar')
    const image = run.remote('schema2:1')
    await Bun.write(archive, makeDockerArchive(image, run.images[0]))
    await run.command('load', '-i', archive)
    await run.push(image, 'schema2:1')
    const manifest = parseManifest(await run.pushed('schema2').readManifest('1'))
    expect(manifest.mediaType).toBe('application/vnd.docker.distribution.manifest.v2+json')
    const back = await run.pullAndExport('schema2:1')
    expect(back.diffIds).toEqual(unpackedImage(run.images[0]).diffIds)
  })
}

function proveBuild(run: StorageRun): void {
  prove('an image that it has built itself goes up and comes back', async () => {
    const file = run.workspace.path('built.txt')
    await Bun.write(file, makeLayer('built').tar)
    const container = (await run.command('from', 'scratch')).stdout.trim()
    await run.command('copy', container, file, '/built.txt')
    await run.command('commit', container, run.remote('built:1'))
    await run.command('rm', container)
    const digest = await run.push(run.remote('built:1'), 'built:1')
    const pushed = await readContent(run.pushed('built'), '1')
    checkContent(pushed)
    expect(pushed.root).toBe(digest)
    expect(await run.pullAndExport('built:1')).toEqual(await readUnpacked(run.pushed('built'), '1'))
  })
}

function proveMultiArch(run: StorageRun): void {
  prove('an index that it has put together serves each platform its image', async () => {
    const list = `${run.program}-list`
    await run.command('manifest', 'create', list)
    for (const { platform } of run.images) {
      await run.push(await run.take(platform.architecture), `multi:${platform.architecture}`)
      await run.command(
        'manifest',
        'add',
        '--tls-verify=false',
        list,
        `docker://${run.remote(`multi:${platform.architecture}`)}`,
      )
    }
    await run.command(
      'manifest',
      'push',
      '--all',
      '--format',
      'oci',
      '--tls-verify=false',
      list,
      `docker://${run.remote('multi:1')}`,
    )
    const pushed = await readContent(run.pushed('multi'), '1')
    checkContent(pushed)
    expect(pushed.parts.get(pushed.root)?.mediaType).toBe(imageMediaTypes.index)
    expect([...pushed.parts.values()].filter((part) => part.kind === 'manifest')).toHaveLength(2)
    await run.command('manifest', 'rm', list)
    for (const image of run.images) {
      const back = await run.pullAndExport('multi:1', '--arch', image.platform.architecture)
      expect(back).toEqual(unpackedImage(image))
    }
  })
}

function proveAnonymous(run: StorageRun, servers: Servers): void {
  prove('an anonymous client pulls only public repositories, and pushes nothing', async () => {
    const attempt = (...args: string[]) => run.workspace.run(run.argv(...args), { mayFail: true })
    const anonymous: AnonymousClient = {
      pull: (name) => attempt('pull', '--tls-verify=false', name),
      push: async (name) => attempt('push', '--tls-verify=false', await run.take('amd64'), name),
    }
    const place = { folder: run.workspace.path('open'), image: run.images[0] }
    await withOpenServer(servers, place, async (berth) => {
      const pulled = await run.pullAndExportFrom(`${berth.host}/public/x:1`)
      expect(pulled).toEqual(unpackedImage(run.images[0]))
      await expectRefused(anonymous, berth, /unauthorized|authentication required/)
    })
  })
}
