// The amount of work of a run. `--quick` must end in about two minutes on two shared cores.
const gibibyte = 2 ** 30
const mebibyte = 2 ** 20

export interface Plan {
  readonly name: 'quick' | 'full'
  readonly manifestRounds: number
  readonly manifestSliceSeconds: number
  readonly connections: number
  readonly blobSizeBytes: number
  readonly downloadRounds: number
  /** The kernel reports CPU time in hundredths of a second. One download of 1 GiB takes too few of them. */
  readonly downloadsPerSlice: number
  readonly uploadRounds: number
  /** Measures uploads by PATCH and then PUT too, as Docker uploads. The bar is about a single PUT. */
  readonly uploadByPatchToo: boolean
  /**
   * Compares Berth on PostgreSQL and S3 with docker-registry on the same S3. The options `fleet...` below belong to it.
   */
  readonly fleet: boolean
  readonly fleetRounds: number
  readonly fleetSliceSeconds: number
  /** All uploads together must fit into the 4 GiB of memory of the store. */
  readonly fleetUploadRounds: number
  readonly fleetBlobSizeBytes: number
  /** How many clients transfer big blobs at the same time. */
  readonly fleetBlobClients: number
  /** How many downloads each client makes in a slice. It uploads once. */
  readonly fleetDownloads: number
  /** A server that wastes CPU time on purpose replaces Berth. It must miss every bar. */
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
  // The slow server needs time for the first answer to each connection. Its ratios are so bad that few rounds suffice.
  const fleetTimes = control ? { fleetRounds: 3, fleetSliceSeconds: 2, fleetUploadRounds: 3 } : {}
  return { ...plan, ...fleetLoad, ...fleetTimes, fleet: args.includes('--fleet'), control, uploadByPatchToo }
}
