// How much is measured. `--quick` has to end in about two minutes on two shared cores.
const gibibyte = 2 ** 30
const mebibyte = 2 ** 20

export interface Plan {
  readonly name: 'quick' | 'full'
  readonly manifestRounds: number
  readonly manifestSliceSeconds: number
  readonly connections: number
  readonly blobSizeBytes: number
  readonly downloadRounds: number
  /** The kernel reports CPU in hundredths of a second; one download of 1 GiB is too few of them to divide by. */
  readonly downloadsPerSlice: number
  readonly uploadRounds: number
  /** The way Docker uploads, PATCH and then PUT, beside the single PUT that the bar is about. */
  readonly uploadByPatchToo: boolean
  /** Berth on PostgreSQL and S3, beside docker-registry on the same S3: other paths, counted by the `fleet...` below. */
  readonly fleet: boolean
  readonly fleetRounds: number
  readonly fleetSliceSeconds: number
  /** Few enough that all of it fits into the store's 4 GiB of memory. */
  readonly fleetUploadRounds: number
  readonly fleetBlobSizeBytes: number
  /** So many clients move big blobs at once. */
  readonly fleetBlobClients: number
  /** So often does each of them in a slice; uploads are made once. */
  readonly fleetDownloads: number
  /** A server that wastes CPU on purpose takes Berth's place: every bar has to be missed. */
  readonly control: boolean
}

const quick = {
  name: 'quick',
  manifestRounds: 9,
  manifestSliceSeconds: 0.4,
  connections: 32,
  blobSizeBytes: gibibyte,
  downloadRounds: 7,
  downloadsPerSlice: 2,
  uploadRounds: 3,
  fleetRounds: 5,
  fleetSliceSeconds: 1,
  uploadByPatchToo: false,
} as const

const full = {
  name: 'full',
  manifestRounds: 11,
  manifestSliceSeconds: 3,
  connections: 32,
  blobSizeBytes: gibibyte,
  downloadRounds: 21,
  downloadsPerSlice: 3,
  uploadRounds: 7,
  fleetRounds: 9,
  fleetSliceSeconds: 2,
  uploadByPatchToo: true,
} as const

const fleetLoad = {
  fleetUploadRounds: 5,
  fleetBlobSizeBytes: 64 * mebibyte,
  fleetBlobClients: 4,
  fleetDownloads: 2,
} as const

export function parsePlan(args: readonly string[]): Plan {
  const unknown = args.find((arg) => !['--fleet', '--quick', '--control'].includes(arg))
  if (unknown !== undefined)
    throw new Error(`unknown argument ${unknown}; usage: npm run bench -- [--fleet] [--quick] [--control]`)
  const control = args.includes('--control')
  const plan = args.includes('--quick') ? quick : full
  const uploadByPatchToo = plan.uploadByPatchToo && !control
  // The slow one needs its time for a first answer to each connection, and what is so far off needs few rounds.
  const fleetTimes = control ? { fleetRounds: 3, fleetSliceSeconds: 2, fleetUploadRounds: 3 } : {}
  return { ...plan, ...fleetLoad, ...fleetTimes, fleet: args.includes('--fleet'), control, uploadByPatchToo }
}
