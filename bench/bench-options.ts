// The options of the command line, and the amount of work of a run.
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'

export interface Plan {
  readonly name: 'quick' | 'full'
  /** A server that wastes CPU time on purpose replaces Berth. It must miss every bar. */
  readonly control: boolean
  /** Fails if a ratio is less than half of the stored one. The bars are then only printed. */
  readonly regression: boolean
  /** Compares Berth on PostgreSQL and S3 with docker-registry on the same S3. */
  readonly fleet: boolean
  readonly programs: Programs
  /** The numbers of workers with which Berth is measured. Bars and stored ratios are about the first. */
  readonly workers: readonly number[]
  readonly connections: number
  readonly readRounds: number
  readonly readSliceSeconds: number
  readonly largeBlobBytes: number
  readonly downloadRounds: number
  /** The kernel reports CPU time in hundredths of a second. One download takes too few of them. */
  readonly downloadsPerSlice: number
  readonly uploadRounds: number
  readonly pushRounds: number
  readonly pushSliceSeconds: number
  /** A row that takes longer than this ends after its third round. */
  readonly rowSecondsMax: number
  readonly zbRequests: number
  readonly fleetRounds: number
  readonly fleetSliceSeconds: number
  /** All uploads together must fit into the 4 GiB of memory of the store. */
  readonly fleetUploadRounds: number
  readonly fleetBlobSizeBytes: number
  /** How many clients transfer big blobs at the same time. */
  readonly fleetBlobClients: number
  /** How many downloads each client makes in a slice. It uploads once. */
  readonly fleetDownloads: number
}

/** Paths of other registries, and of zot's benchmark. A peer without a path is left out. */
export interface Programs {
  readonly zot: string | undefined
  readonly distribution: string | undefined
  readonly olareg: string | undefined
  readonly zb: string | undefined
}

const mebibyte = 2 ** 20

const quick = {
  name: 'quick',
  readRounds: 21,
  readSliceSeconds: 0.4,
  downloadRounds: 7,
  uploadRounds: 3,
  pushRounds: 5,
  pushSliceSeconds: 1,
  rowSecondsMax: 40,
  fleetRounds: 5,
  fleetSliceSeconds: 1,
} as const

const full = {
  name: 'full',
  readRounds: 5,
  readSliceSeconds: 0.4,
  downloadRounds: 5,
  uploadRounds: 3,
  pushRounds: 5,
  pushSliceSeconds: 1,
  rowSecondsMax: 40,
  fleetRounds: 9,
  fleetSliceSeconds: 2,
} as const

const sameInBoth = {
  connections: 32,
  largeBlobBytes: 512 * mebibyte,
  downloadsPerSlice: 4,
  zbRequests: 10,
  fleetUploadRounds: 5,
  fleetBlobSizeBytes: 64 * mebibyte,
  fleetBlobClients: 4,
  fleetDownloads: 2,
} as const

const flags = ['quick', 'control', 'regression', 'fleet'] as const
const paths = ['zot', 'distribution', 'olareg', 'zb'] as const

export function parsePlan(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(flags.map((name) => [name, { type: 'boolean' as const }])),
      ...Object.fromEntries(paths.map((name) => [name, { type: 'string' as const }])),
    },
  })
  const isSet = (name: (typeof flags)[number]) => values[name] === true
  // The control and the stored ratios are about the rows of the quick run.
  const plan = isSet('quick') || isSet('control') || isSet('regression') ? quick : full
  return {
    ...plan,
    ...sameInBoth,
    // The slow server needs time for the first answer to each connection. Its ratios are so bad that few rounds suffice.
    ...(isSet('control') && { fleetRounds: 3, fleetSliceSeconds: 2, fleetUploadRounds: 3 }),
    workers: plan === quick ? [1] : [1, Math.max(2, availableParallelism())],
    programs: { zot: pathOf('zot'), distribution: pathOf('distribution'), olareg: pathOf('olareg'), zb: pathOf('zb') },
    control: isSet('control'),
    regression: isSet('regression'),
    fleet: isSet('fleet'),
  }

  function pathOf(name: (typeof paths)[number]): string | undefined {
    const path = values[name]
    if (typeof path !== 'string') return undefined
    if (Bun.which(path) === null) throw new Error(`--${name} ${path}: no such program`)
    return path
  }
}
