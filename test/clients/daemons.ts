// Daemons for the tests, with all their folders and sockets in one workspace.
import { closeSync, openSync, readFileSync } from 'node:fs'
import type { Workspace } from '../support/basics/command.ts'

export interface Daemon {
  stop(): Promise<void>
}

const readyWithinMs = 40_000
const endWithinMs = 30_000

export async function startDockerEngine(workspace: Workspace): Promise<Daemon> {
  const containerd = await startContainerd(workspace)
  const socket = `unix://${workspace.path('docker.sock')}`
  const flags = ['--iptables=false', '--ip6tables=false', '--bridge=none', '--storage-driver=vfs']
  const places = [
    ...['--data-root', workspace.makeFolder('docker-data'), '--exec-root', workspace.makeFolder('docker-exec')],
    ...['--pidfile', workspace.path('docker.pid'), '-H', socket, '--containerd', workspace.path('containerd.sock')],
  ]
  const isReady = () => succeeds(workspace, ['docker', '-H', socket, 'version'])
  try {
    const engine = await startDaemon(workspace, ['dockerd', ...flags, ...places], isReady)
    return {
      async stop() {
        await engine.stop()
        await containerd.stop()
      },
    }
  } catch (error) {
    await containerd.stop()
    throw error
  }
}

export async function startContainerd(workspace: Workspace): Promise<Daemon> {
  const config = workspace.path('containerd.toml')
  const lines = [
    'version = 2',
    `root = '${workspace.makeFolder('containerd-root')}'`,
    `state = '${workspace.makeFolder('containerd-state')}'`,
    "disabled_plugins = ['io.containerd.grpc.v1.cri']",
    '[grpc]',
    `address = '${workspace.path('containerd.sock')}'`,
    '[ttrpc]',
    `address = '${workspace.path('containerd.sock.ttrpc')}'`,
    '',
  ]
  await Bun.write(config, lines.join('\n'))
  const isReady = () => succeeds(workspace, ['ctr', '--address', workspace.path('containerd.sock'), 'version'])
  return await startDaemon(workspace, ['containerd', '--config', config], isReady)
}

async function succeeds(workspace: Workspace, argv: readonly string[]): Promise<boolean> {
  const { code } = await workspace.run(argv, { mayFail: true })
  return code === 0
}

/** Starts a program that goes on, waits until it answers, and ends it by its own process id. */
async function startDaemon(
  workspace: Workspace,
  argv: readonly string[],
  isReady: () => Promise<boolean>,
): Promise<Daemon> {
  const log = workspace.path(`${argv[0]}.log`)
  const output = openSync(log, 'a')
  const child = Bun.spawn([...argv], { env: { ...workspace.env }, stdin: 'ignore', stdout: output, stderr: output })
  closeSync(output)
  const stop = async () => {
    child.kill('SIGTERM')
    const impatience = setTimeout(() => child.kill('SIGKILL'), endWithinMs)
    await child.exited
    clearTimeout(impatience)
  }
  const deadline = Date.now() + readyWithinMs
  while (!(await isReady())) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop()
      throw new Error(`${argv.join(' ')} did not get ready:\n${readFileSync(log, 'utf8').slice(-4_000)}`)
    }
    await Bun.sleep(100)
  }
  return { stop }
}
