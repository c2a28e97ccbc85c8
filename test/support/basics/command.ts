// Runs programs with an environment of their own and a time limit.
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface CommandOptions {
  readonly env: Readonly<Record<string, string>>
  readonly input?: string
  readonly timeoutMs?: number
  /** An exit code other than 0 is an answer too, not an error. */
  readonly mayFail?: boolean
}

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  /** Both streams, one after the other. */
  readonly output: string
}

/** Runs a program to its end; what went wrong is in the error's message. */
export async function runCommand(argv: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const child = Bun.spawn([...argv], {
    env: { ...options.env },
    stdin: new Blob([options.input ?? '']),
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: options.timeoutMs ?? 120_000,
    killSignal: 'SIGKILL',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  const result = { code, stdout, output: stdout + stderr }
  if (child.signalCode === 'SIGKILL') throw new Error(`took too long: ${argv.join(' ')}\n${result.output}`)
  if (code !== 0 && options.mayFail !== true) throw new Error(`ended with ${code}: ${argv.join(' ')}\n${result.output}`)
  return result
}

/** A temporary folder that belongs to one client, and the environment that keeps the client inside it. */
export class Workspace {
  readonly folder: string
  readonly env: Readonly<Record<string, string>>

  constructor(name: string) {
    // All in lower case: podman takes the folder of a layout for an image's name.
    this.folder = join(tmpdir(), `berth-${name}-${randomBytes(6).toString('hex')}`)
    mkdirSync(this.folder)
    this.env = {
      PATH: process.env['PATH'] ?? '/usr/bin',
      LC_ALL: 'C',
      HOME: this.makeFolder('home'),
      TMPDIR: this.makeFolder('tmp'),
      XDG_RUNTIME_DIR: this.makeFolder('run'),
      DOCKER_CONFIG: this.makeFolder('docker-config'),
      REGISTRY_AUTH_FILE: this.path('auth.json'),
    }
    writeFileSync(this.path('auth.json'), '{}')
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  makeFolder(name: string): string {
    mkdirSync(this.path(name), { recursive: true })
    return this.path(name)
  }

  run(argv: readonly string[], options: Omit<CommandOptions, 'env'> = {}): Promise<CommandResult> {
    return runCommand(argv, { env: this.env, ...options })
  }

  /** Packs out an archive and gives the folder that holds its files. */
  async unpack(archive: string): Promise<string> {
    const folder = mkdtempSync(join(this.folder, 'unpacked-'))
    await this.run(['tar', '-xf', archive, '-C', folder])
    return folder
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Programs of which the PATH holds none. */
export function missingTools(tools: readonly string[]): readonly string[] {
  return tools.filter((tool) => Bun.which(tool) === null)
}
