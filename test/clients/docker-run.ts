import { expect } from 'bun:test'
import { Workspace } from '../support/basics/command.ts'
import { registrySource, type UnpackedImage } from '../support/clients/image-content.ts'
import { type Image, makeImage } from '../support/clients/oci-layout.ts'
import type { BerthProcess } from '../support/server/berth-process.ts'
import { type Daemon, startDockerEngine } from './daemons.ts'
import { makeDockerArchive, readDockerArchive } from './docker-archive.ts'
import type { BerthOf } from './servers.ts'

/** The docker command, its engine in the same workspace, and the server that it talks to. */
export class DockerRun {
  readonly berth: BerthOf
  readonly workspace: Workspace
  readonly image: Image = makeImage(3)

  readonly #engine: Daemon | undefined

  private constructor(berth: BerthOf, workspace: Workspace, engine?: Daemon) {
    this.berth = berth
    this.workspace = workspace
    this.#engine = engine
  }

  static async start(berth: BerthOf): Promise<DockerRun> {
    const workspace = new Workspace('docker')
    return new DockerRun(berth, workspace, await startDockerEngine(workspace))
  }

  async stop(): Promise<void> {
    await this.#engine?.stop()
    this.workspace.remove()
  }

  /** The same docker, talking to another server. */
  at(berth: BerthProcess): DockerRun {
    return new DockerRun(() => berth, this.workspace)
  }

  docker(...args: string[]) {
    return this.workspace.run(this.argv(...args))
  }

  argv(...args: string[]): string[] {
    return ['docker', '-H', `unix://${this.workspace.path('docker.sock')}`, ...args]
  }

  async login(user: string, secret: string): Promise<void> {
    const { output } = await this.tryLogin(user, secret)
    expect(output).toContain('Login Succeeded')
  }

  tryLogin(user: string, secret: string) {
    const argv = this.argv('login', '-u', user, '--password-stdin', this.berth().host)
    return this.workspace.run(argv, { input: secret, mayFail: true })
  }

  remote(image: string): string {
    return `${this.berth().host}/${image}`
  }

  pushed(repository: string) {
    return registrySource(this.berth().url, this.berth().apiKey, repository)
  }

  /** For commands that must fail: a success is an error, and the output says why it failed. */
  async refused(...args: string[]): Promise<string> {
    const { code, output } = await this.workspace.run(this.argv(...args), { mayFail: true })
    if (code === 0) throw new Error(`docker ${args.join(' ')} should have failed:\n${output}`)
    return output
  }

  /** Puts an image into the engine under a name. */
  async load(name: string, image: Image = this.image): Promise<void> {
    const archive = this.workspace.path('load.tar')
    await Bun.write(archive, makeDockerArchive(name, image))
    await this.docker('load', '-i', archive)
  }

  /** Leaves the engine with no image at all, so that a pull must bring everything. */
  async forgetImages(): Promise<void> {
    const known = (await this.docker('images', '-q', '--no-trunc')).stdout.split('\n').filter((id) => id !== '')
    if (known.length > 0) await this.docker('rmi', '-f', ...new Set(known))
    expect((await this.docker('images', '-q', '-a')).stdout).toBe('')
  }

  /** What the engine itself gives out of an image: the config's bytes and the layers as plain tars. */
  async saved(name: string): Promise<UnpackedImage> {
    const archive = this.workspace.path('save.tar')
    await this.docker('save', '-o', archive, name)
    return readDockerArchive(await this.workspace.unpack(archive))
  }
}
