// The registries of a comparison. The other ones run without credentials, access log and fsync, in their favour.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from './bench-options.ts'
import { type Contestant, freePort, startBerthContestant, startProgram, startSlowRegistry } from './contestants.ts'
import { findDockerRegistry, startDockerRegistry } from './docker-registry.ts'

export interface Registry {
  readonly name: string
  readonly isBerth: boolean
  /** Syncs uploads to the disk. It takes part in few rows, to save time. */
  readonly isSyncing?: true
  /** The folder is empty and stays its own. */
  start(folder: string): Promise<Contestant>
}

export const dockerRegistryName = 'docker-registry'
export const zotName = 'zot'
export const syncingZotName = 'zot with fsync'

export function berthName(workers: number): string {
  return workers === 1 ? 'Berth, 1 worker' : `Berth, ${workers} workers`
}

export function listRegistries({ control, workers, programs }: Plan): Registry[] {
  const { distribution, zot, olareg } = programs
  const dockerRegistry = findDockerRegistry()
  const berths = workers.map((count): Registry => {
    const name = berthName(count)
    const settings = { BERTH_SERVER__WORKERS: `${count}` }
    const start = (folder: string) =>
      control ? startSlowRegistry(folder, name) : startBerthContestant(folder, settings, name)
    return { name, isBerth: true, start }
  })
  const peer = (
    name: string,
    program: string | undefined,
    start: (program: string, folder: string) => Promise<Contestant>,
  ) => (program === undefined ? [] : [{ name, isBerth: false, start: (folder: string) => start(program, folder) }])
  return [
    ...berths,
    ...peer(dockerRegistryName, dockerRegistry, (program, folder) =>
      startDockerRegistry(program, { name: dockerRegistryName, folder }),
    ),
    ...peer('distribution 3', distribution, (program, folder) =>
      startDockerRegistry(program, { name: 'distribution 3', folder }),
    ),
    ...peer(zotName, zot, (program, folder) => startZot(program, folder, false)),
    ...peer(syncingZotName, zot, (program, folder) => startZot(program, folder, true)).map((syncing) => ({
      ...syncing,
      isSyncing: true as const,
    })),
    ...peer('olareg', olareg, startOlareg),
  ]
}

function startZot(program: string, folder: string, commit: boolean): Promise<Contestant> {
  const port = freePort()
  const configPath = join(folder, 'zot.json')
  const config = {
    distSpecVersion: '1.1.1',
    // `commit` syncs each blob to the disk.
    storage: { rootDirectory: join(folder, 'zot'), gc: false, commit },
    http: { address: '127.0.0.1', port: `${port}` },
    log: { level: 'error', output: '/dev/null' },
  }
  writeFileSync(configPath, JSON.stringify(config))
  return startProgram(commit ? syncingZotName : zotName, [program, 'serve', configPath], port)
}

function startOlareg(program: string, folder: string): Promise<Contestant> {
  const port = freePort()
  const dir = join(folder, 'olareg')
  mkdirSync(dir)
  const options = ['--addr', '127.0.0.1', '--port', `${port}`, '--dir', dir, '--gc-frequency', '-1s']
  return startProgram('olareg', [program, 'serve', ...options], port)
}
