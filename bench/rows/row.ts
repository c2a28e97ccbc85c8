// A row of the comparison: one kind of work that all contestants do in turn.
import type { Plan } from '../bench-options.ts'
import type { Contestant } from '../contestants.ts'
import type { Figure } from '../figures.ts'
import type { Samples, Slice } from '../rounds.ts'

export interface Row {
  readonly title: string
  readonly figures: readonly Figure[]
  /** Describes the load. */
  readonly detail: string
  /**
   * `apart`: the servers have one core and the load has another, so that CPU time is exact. `shared`: both use all
   * cores, so that speed is what an installation has.
   */
  readonly cores: 'apart' | 'shared'
  readonly rounds: number
  readonly slices: readonly Slice[]
}

export interface MeasuredRow {
  readonly row: Row
  readonly samples: Samples
}

/** Rows that use the same servers. They are started for the group in empty folders, and removed after it. */
export interface RowGroup {
  readonly name: string
  /** Whether the group is part of `--quick`. */
  readonly isQuick: boolean
  /** Whether peers take part that sync uploads, as Berth does. */
  readonly withSyncingPeers: boolean
  prepare(field: Field): Promise<readonly Row[]>
}

/** The servers of one group. */
export interface Field {
  readonly plan: Plan
  /** For temporary files. It is removed after the group. */
  readonly folder: string
  readonly registries: readonly Contestant[]
  /** The first Berth. The limits answer what it answers. */
  readonly berth: Contestant
  /** Adds a contestant that starts later, which is stopped after the group. */
  enter(starting: Promise<Contestant>): Promise<Contestant>
}

/** The names of the limits: servers that do only what no registry can avoid. */
export const constantName = 'constant answer'
export const bareFileName = 'bare Bun.file'
export const bareUploadName = 'bare upload'
export const limitNames: readonly string[] = [constantName, bareFileName, bareUploadName]
