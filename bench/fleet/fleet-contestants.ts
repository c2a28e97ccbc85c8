// The contestants of the benchmark with PostgreSQL and S3.

import type { Plan } from '../bench-options.ts'
import * as contestants from '../contestants.ts'
import { findDockerRegistry, startDockerRegistry } from '../docker-registry.ts'
import type { FleetStores } from './fleet-stores.ts'

type Contestant = contestants.Contestant

export interface Entering {
  readonly folder: string
  readonly stores: FleetStores
  /** Assigns a core to the process, and makes sure that it is stopped at the end. */
  enter(starting: Promise<Contestant>): Promise<Contestant>
}

export async function startOurs(plan: Plan, { folder, stores, enter }: Entering): Promise<Contestant> {
  const berth = await enter(contestants.startBerthContestant(folder, stores.settings))
  const helperPid = stores.postgresPid
  if (!plan.control) return { ...berth, helperPid }
  // It has the name of Berth, so that the same bars apply. The CPU time of Berth is added.
  const proxy = await enter(contestants.startScript('berth behind the slow proxy', 'slow-proxy', [berth.url]))
  return { ...proxy, name: berth.name, headers: berth.headers, helperPid }
}

/** Empty if docker-registry is not installed. */
export async function enterPeer({ folder, stores, enter }: Entering): Promise<Contestant[]> {
  const program = findDockerRegistry()
  if (program === undefined) return []
  const options = { name: 'docker-registry', folder, s3: stores.s3 }
  return [await enter(startDockerRegistry(program, options))]
}
