import type { GarbageAges } from '../ports/garbage.ts'
import type { RegistrySettings } from '../registry/settings.ts'
import type { Config } from './settings.ts'

// What the rules of the registry need of the configuration.

const dayMs = 86_400_000

/**
 * How long a collector reserves a batch of objects that it removes. A healthy blob store needs much less. If it needs more,
 * another collector removes the rest of the batch too. That costs time and harms nothing.
 */
const holdMs = 300_000

export function toRegistrySettings(config: Config): RegistrySettings {
  return {
    autoEnable: config.autoEnable,
    missingContent: config.missingContent,
    additionalMediaTypes: config.additionalMediaTypes,
    manifestBytesMax: config.manifestBytes,
    jsonDepthMax: config.jsonDepth,
    descriptorsMax: config.descriptors,
    annotationsMax: config.annotations,
    annotationBytesMax: config.annotationBytes,
    referrersBytesMax: config.referrersBytes,
    blobBytesMax: config.blobBytes,
    inlineBytesMax: config.inlineBytes,
    uploadsPerRepositoryMax: config.uploadsPerRepository,
    uploadsPerPrincipalMax: config.uploadsPerPrincipal,
    tagsPerPushMax: config.tagsPerPush,
    pageDefault: config.pageDefault,
    pageMax: config.pageMax,
    leaseMs: config.leaseMs,
    quarantineMs: config.quarantineMs,
    uploadIdleMs: config.uploadIdleMs,
    uploadMaxMs: config.uploadMaxMs,
    untaggedMs: config.untaggedMs,
    undeleteMs: config.undeleteMs,
    tagHistoryMs: config.tagHistoryMs,
  }
}

export function toGarbageAges(config: Config): GarbageAges {
  const { leaseMs, quarantineMs, uploadIdleMs, uploadMaxMs, uploadDoneMs, untaggedMs, undeleteMs, tagHistoryMs } =
    config
  return {
    leaseMs,
    quarantineMs,
    uploadIdleMs,
    uploadMaxMs,
    uploadDoneMs,
    untaggedMs,
    undeleteMs,
    tagHistoryMs,
    holdMs,
  }
}

/**
 * How long the name of a deleted account stays blocked. Scoped tokens of its callers are valid for so long; the first use of such a
 * token would create the account again.
 */
export function nameBlockedMs({ scopedTokenMs, identityCacheMs }: Config): number {
  return scopedTokenMs + identityCacheMs
}

/** The age from which an object without a row counts as orphaned. A younger one may belong to an upload that has no row yet. */
export function orphanMinAgeMs({ uploadMaxMs }: Config): number {
  return uploadMaxMs + dayMs
}
