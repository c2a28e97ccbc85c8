/** The registry's limits and policies. Where they come from is the assembly's business. */
export interface RegistrySettings {
  /** Whether an account comes into being, enabled, on its first use. */
  readonly autoEnable: boolean
  /** `reject`: a manifest that names content which is not here is refused. */
  readonly missingContent: 'reject' | 'allow'
  /** Media types of manifests beside the three that are always accepted. */
  readonly additionalMediaTypes: readonly string[]
  readonly manifestBytesMax: number
  readonly jsonDepthMax: number
  readonly descriptorsMax: number
  readonly annotationsMax: number
  readonly annotationBytesMax: number
  readonly referrersBytesMax: number
  readonly blobBytesMax: number
  readonly uploadsPerRepositoryMax: number
  /** Open upload sessions of one principal in one repository. */
  readonly uploadsPerPrincipalMax: number
  readonly tagsPerPushMax: number
  readonly pageDefault: number
  readonly pageMax: number
  /** How long a blob is safe after it was uploaded, mounted or asked for, without a manifest that names it. */
  readonly leaseMs: number
  readonly quarantineMs: number
  readonly uploadIdleMs: number
  readonly uploadMaxMs: number
}
