// How much is measured. `--quick` has to end in about two minutes on two shared cores.
const gibibyte = 2 ** 30

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
  uploadByPatchToo: true,
} as const

export function parsePlan(args: readonly string[]): Plan {
  const unknown = args.find((arg) => arg !== '--quick' && arg !== '--control')
  if (unknown !== undefined)
    throw new Error(`unknown argument ${unknown}; usage: npm run bench -- [--quick] [--control]`)
  const control = args.includes('--control')
  const plan: Omit<Plan, 'control'> = args.includes('--quick') ? quick : full
  return { ...plan, control, uploadByPatchToo: plan.uploadByPatchToo && !control }
}
