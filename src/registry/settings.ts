/** The limits and policies of the registry. The application takes them from the configuration. */
export interface RegistrySettings {
  /** Whether the first use of an account creates it, enabled. */
  readonly autoEnable: boolean
  /** `reject`: a manifest that names missing content is refused. */
  readonly missingContent: 'reject' | 'allow'
  /** Media types of manifests, besides the three that are always accepted. */
  readonly additionalMediaTypes: readonly string[]
  readonly manifestBytesMax: number
  readonly jsonDepthMax: number
  readonly descriptorsMax: number
  readonly annotationsMax: number
  readonly annotationBytesMax: number
  readonly referrersBytesMax: number
  readonly blobBytesMax: number
  /** Blobs of at most this size are stored inline, in their rows. 0: none. */
  readonly inlineBytesMax: number
  readonly uploadsPerRepositoryMax: number
  /** Open upload sessions of one caller in one repository. */
  readonly uploadsPerPrincipalMax: number
  readonly tagsPerPushMax: number
  readonly pageDefault: number
  readonly pageMax: number
  /** How long a blob that no manifest names is kept after a client uploaded, mounted or looked it up. */
  readonly leaseMs: number
  readonly quarantineMs: number
  readonly uploadIdleMs: number
  readonly uploadMaxMs: number
  /** How long untagged manifests are kept. 0: for ever. */
  readonly untaggedMs: number
  /** How long deleted manifests can be undeleted. 0: not at all. */
  readonly undeleteMs: number
  /** How long the moves of tags are kept. */
  readonly tagHistoryMs: number
}
