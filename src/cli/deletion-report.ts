import { formatBytes } from '../lib/quantities.ts'
import type { DeletionReport } from '../registry/image-deletion.ts'
import { printJson, showTime, tell } from './printing.ts'
import type { Workplace } from './stores.ts'

/** The options of commands that delete. */
export interface DeletionFlags {
  readonly config?: string
  readonly account?: string
  readonly json?: true
  readonly dryRun?: true
  readonly companions?: true
  readonly images?: true
}

export const dryRunOption = ['--dry-run', 'print what would be deleted, and change nothing'] as const
export const companionsOption = [
  '--companions',
  'delete what belongs to the images too: referrers, cosign tags, and manifests that only they list',
] as const

/** The changes of commands are recorded under this name. */
export const operator = { subject: 'operator' }

/** Operators may delete immutable tags, as callers with the right `operate` may. */
export function toDeletionOptions({ dryRun, companions, images }: DeletionFlags) {
  return {
    isDryRun: dryRun === true,
    withCompanions: companions === true,
    withImages: images === true,
    mayDeleteImmutable: true,
  }
}

export function settingsOf({ config }: Workplace) {
  const { missingContent, undeleteMs, leaseMs, quarantineMs } = config
  return { missingContent, undeleteMs, leaseMs, quarantineMs }
}

export function printReport(report: DeletionReport, json: true | undefined): void {
  if (json) printJson(report)
  else printForPeople(report)
}

function printForPeople(report: DeletionReport): void {
  const verb = report.isDryRun ? 'would delete' : 'deleted'
  for (const { tag, digest } of report.tags) console.log(`${verb} the tag ${tag} (${digest})`)
  for (const { role, digest } of report.manifests) console.log(`${verb} the manifest ${digest} (${role})`)
  for (const { tag, digest } of report.otherTags) console.log(`the tag ${tag} still points to ${digest}`)
  for (const { digest } of report.listed) console.log(`an index still lists ${digest}`)
  for (const { digest } of report.untagged) console.log(`nothing leads to ${digest} any more`)
  for (const { digest, parent, isUntagged } of report.children) {
    console.log(
      `${parent} listed ${digest}, to which ${isUntagged ? 'nothing leads any more' : 'something else leads'}`,
    )
  }
  for (const { digest, subject } of report.referrers) console.log(`${digest} refers to ${subject}`)
  const least = report.hasMore ? 'at least ' : ''
  const { tags, manifests, freedBytes, freedAt, undeletableUntil } = report
  console.log(
    `${verb} ${tags.length} tags and ${manifests.length} manifests; ${least}${formatBytes(freedBytes)} can be freed from ${showTime(freedAt, 'then')} on`,
  )
  if (undeletableUntil !== undefined) console.log(`they can be undeleted until ${showTime(undeletableUntil, '')}`)
  if (report.hasMore) {
    const rest = report.last === undefined ? '' : ` with --after ${report.last}`
    tell(`there is more: repeat the command${rest}`)
  }
}
