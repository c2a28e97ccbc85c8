// Starts the contestants of one run one by one. A list of them makes sure that all are stopped in the end.
import { join } from 'node:path'
import type { Plan } from './bench-options.ts'
import * as contestants from './contestants.ts'
import { type Cores, pinProcess } from './cores.ts'
import { findDockerRegistry, startDockerRegistry } from './docker-registry.ts'

export interface Field {
  readonly plan: Plan
  /** For temporary files. It is removed when the benchmark ends. */
  readonly folder: string
  readonly berth: contestants.Contestant
  readonly bareFile: contestants.Contestant
  readonly bareUpload: contestants.Contestant
  readonly bareUploadPath: string
  readonly dockerRegistry: contestants.Contestant | undefined
  readonly dockerRegistryWithPassword: contestants.Contestant | undefined
  /** Adds a contestant that starts later. */
  enter(starting: Promise<contestants.Contestant>): Promise<contestants.Contestant>
}

export interface FieldOptions {
  readonly plan: Plan
  readonly folder: string
  /** All processes that must be stopped at the end. */
  readonly running: contestants.Contestant[]
  readonly cores: Cores | undefined
  /** The file that `bare Bun.file` answers. */
  readonly blobPath: string
}

export async function startField({ plan, folder, running, cores, blobPath }: FieldOptions): Promise<Field> {
  const enter = async (starting: Promise<contestants.Contestant>) => {
    const contestant = await starting
    running.push(contestant)
    if (cores !== undefined) pinProcess(contestant.pid, cores.server)
    return contestant
  }
  const bareUploadPath = join(folder, 'bare-upload.bin')
  const program = findDockerRegistry()
  const startPeer = (name: string, withPassword: boolean) =>
    program === undefined ? undefined : enter(startDockerRegistry(program, { name, folder, withPassword }))
  return {
    plan,
    folder,
    enter,
    berth: await enter(plan.control ? contestants.startSlowRegistry(folder) : contestants.startBerthContestant(folder)),
    bareFile: await enter(contestants.startBareFile(blobPath)),
    bareUpload: await enter(contestants.startBareUpload(bareUploadPath)),
    bareUploadPath,
    dockerRegistry: await startPeer('docker-registry', false),
    dockerRegistryWithPassword: await startPeer('docker-registry with password', true),
  }
}
