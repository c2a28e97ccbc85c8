import { formatBytes } from '../lib/quantities.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { Quota } from '../ports/quotas.ts'
import type { RowId } from '../ports/row-id.ts'
import type { UploadOwner } from '../ports/uploads.ts'
import type { AccountChange, AccountUsage } from '../ports/usage.ts'

// Quotas stop pushes that would add something beyond a limit. They never stop pulls, deletions, restores, and pushes that
// only move tags to manifests that exist. Only the usage that is committed counts. So pushes that are committed at the
// same moment can exceed a limit together: with PostgreSQL by one push for each connection, and with SQLite not at all.

type UsageTable = Pick<Tables, 'usage'>
type SetNeeds = { readonly metadata: Pick<MetadataStore, 'accounts' | 'quotas'> }
type NoteNeeds = { readonly metadata: Pick<MetadataStore, 'accounts'> }

export type QuotaKind = keyof Quota

/** From this share of a limit on, the account is warned. */
export const warnShare = 0.8

const nouns: Readonly<Record<QuotaKind, string>> = { bytes: 'stored', repositories: 'repositories', tags: 'tags' }

/** The message contains the numbers, because clients show only the message. */
export class QuotaExceeded extends RegistryRefusal {
  constructor(of: QuotaKind, used: number, max: number, needed: number) {
    super('quota-exceeded', { of, used, max, needed })
    const show = of === 'bytes' ? formatBytes : String
    this.message =
      `${this.message}: the account has ${show(used)} of ${show(max)} ${nouns[of]}, and this push adds ${show(needed)}; ` +
      'delete images and wait until they are collected, or ask the operator'
  }
}

/** What a push adds, as far as it is known. */
export type Addition = Readonly<Partial<Record<QuotaKind, number>>>

/** The account of a push. */
export interface LimitedAccount {
  readonly id: RowId
  readonly quota: Quota | undefined
}

/** Throws if the push would exceed the quota. Reads nothing if the account has no quota, or if nothing is added. */
export async function checkQuota({ usage }: UsageTable, { id, quota }: LimitedAccount, adds: Addition): Promise<void> {
  if (quota === undefined) return
  const limited = kinds.filter((of) => quota[of] !== undefined && (adds[of] ?? 0) > 0)
  if (limited.length === 0) return
  const used = usedOf(await usage.findOfAccount(id))
  for (const of of limited) {
    const [max, needed] = [quota[of] ?? 0, adds[of] ?? 0]
    if (used[of] + needed > max) throw new QuotaExceeded(of, used[of], max, needed)
  }
}

/** At the start of an upload, as far as it is known then what it will add. */
export async function checkStart(
  tables: UsageTable,
  account: LimitedAccount,
  isImage: boolean,
  announcedBytes: number,
): Promise<void> {
  checkRoom(await findRoom(tables, account), announcedBytes)
  if (!isImage) await checkQuota(tables, account, { repositories: 1 })
}

export function toLimited({ accountId: id, quota }: Pick<UploadOwner, 'accountId' | 'quota'>): LimitedAccount {
  return { id, quota }
}

/** Throws unless the account may begin to store bytes. Returns how many it may store. Undefined: any number. */
export async function findRoom({ usage }: UsageTable, { id, quota }: LimitedAccount): Promise<Room | undefined> {
  const max = quota?.bytes
  if (max === undefined) return undefined
  const used = (await usage.findOfAccount(id)).storedBytes
  if (used >= max) throw new QuotaExceeded('bytes', used, max, 1)
  return { used, max }
}

export interface Room {
  readonly used: number
  readonly max: number
}

export function checkRoom(room: Room | undefined, sizeBytes: number): void {
  if (room !== undefined && room.used + sizeBytes > room.max) {
    throw new QuotaExceeded('bytes', room.used, room.max, sizeBytes)
  }
}

const kinds: readonly QuotaKind[] = ['bytes', 'repositories', 'tags']

export function usedOf({ storedBytes, images, tags }: AccountUsage): Readonly<Record<QuotaKind, number>> {
  return { bytes: storedBytes, repositories: images, tags }
}

/** The limits that are nearly or completely used. */
export function listWarnings(quota: Quota | undefined, usage: AccountUsage): QuotaKind[] {
  const used = usedOf(usage)
  return kinds.filter((of) => isNear(used[of], quota?.[of]))
}

function isNear(used: number, max: number | undefined): boolean {
  return max !== undefined && used >= max * warnShare
}

/** For operators. False if there is no such account. */
export async function setQuota({ metadata }: SetNeeds, name: string, quota: Quota): Promise<boolean> {
  const account = await metadata.accounts.find(name)
  if (account === undefined) return false
  await metadata.quotas.set(account.id, quota)
  return true
}

export interface QuotaWarning {
  readonly account: string
  readonly of: QuotaKind
  readonly used: number
  readonly max: number
}

/** The limits that these changes have brought near. Each crossing is in one change, so it is found once. */
export async function findCrossings(
  { metadata }: NoteNeeds,
  changes: readonly AccountChange[],
): Promise<QuotaWarning[]> {
  const warnings: QuotaWarning[] = []
  for (const { account, before, after } of changes) {
    const quota = (await metadata.accounts.find(account))?.quota
    if (quota === undefined) continue
    const [usedBefore, used] = [usedOf(before), usedOf(after)]
    for (const of of kinds) {
      const max = quota[of]
      if (max === undefined || isNear(usedBefore[of], max) || !isNear(used[of], max)) continue
      warnings.push({ account, of, used: used[of], max })
    }
  }
  return warnings
}
