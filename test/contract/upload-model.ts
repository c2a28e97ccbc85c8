// The naive model of upload sessions, and the steps of a walk that compares it with a store.
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { Digest } from '../../src/oci/digest.ts'
import type { StorageKey, UnfinishedObject } from '../../src/ports/blob-store.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import type { Upload, UploadState } from '../../src/ports/uploads.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { freshUploadId, hourMs, noAges, openShelf, type Shelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'

const isLong = fc.boolean()
const at = fc.nat({ max: 7 })
/** Mostly the owner of the session. */
const asker = fc.constantFrom(undefined, undefined, undefined, 0, 1, 2, 3)
export const uploadStep = fc.oneof(
  { weight: 2, arbitrary: fc.record({ act: fc.constant('begin' as const), at, isLong }) },
  {
    weight: 5,
    arbitrary: fc.record({ act: fc.constant('claim' as const), at, asker, isLong, isClosing: fc.boolean() }),
  },
  {
    // By a writer that has, or had, the turn.
    weight: 4,
    arbitrary: fc.record({ act: fc.constantFrom('renew' as const, 'renew' as const, 'hold' as const), at, isLong }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant('release' as const),
      at,
      sizeBytes: fc.constantFrom(0, 10, 5_000_000_000),
      notes: fc.constantFrom(undefined, 'a note', 'x'.repeat(100_000)),
      hasDigest: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constantFrom('commit' as const, 'record' as const), at, isLong }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constantFrom('remove' as const, 'remove any' as const), at, asker }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constantFrom(
        'expire open ones' as const,
        'expire open ones' as const,
        'expire done ones' as const,
        'end all turns' as const,
      ),
    }),
  },
)
type Step = typeof uploadStep extends fc.Arbitrary<infer T> ? T : never

/** A session in the model. A turn lasts for an hour, or is over at once. */
interface Session {
  readonly shelf: Shelf
  upload: Upload
  hasTurn: boolean
  closing: Digest | undefined
  done: Digest | undefined
  isGone: boolean
}

/** The model, and the store beside it: each step is done by both, and tells what the model expects and what the store did. */
export class UploadWalk {
  readonly #metadata: MetadataStore
  readonly #shelves: readonly Shelf[]
  readonly #sessions: Session[] = []
  /** Of sessions as they were created, claimed or recorded. */
  readonly #writers: { readonly session: Session; readonly upload: Upload }[] = []
  readonly #trash: { readonly storageKey: StorageKey; readonly notes: string | undefined }[] = []

  constructor(metadata: MetadataStore, shelves: readonly Shelf[]) {
    this.#metadata = metadata
    this.#shelves = shelves
  }

  static async open(metadata: MetadataStore): Promise<UploadWalk> {
    const app = await openShelf(metadata)
    const mallory = { ...app, owner: { ...app.owner, subject: 'mallory' } }
    const shelves = [app, mallory, await openShelf(metadata, 'acme', 'other'), await openShelf(metadata, 'rival')]
    const walk = new UploadWalk(metadata, shelves)
    for (const shelf of shelves.slice(0, 2)) await walk.#begin(shelf, false)
    return walk
  }

  #one<T>(list: readonly T[], index: number): T {
    return list[index % list.length] as T
  }

  async do(one: Step): Promise<readonly [expected: unknown, actual: unknown]> {
    const { uploads } = this.#metadata
    if (one.act === 'begin') return this.#begin(this.#one(this.#shelves, one.at), one.isLong)
    if (!('at' in one)) {
      if (one.act !== 'end all turns') return this.#expire(one.act === 'expire done ones')
      for (const session of this.#sessions) session.hasTurn = false
      return [undefined, await uploads.releaseAllTurns()]
    }
    if ('asker' in one) {
      const session = this.#one(this.#sessions.slice(-3), one.at)
      return this.#ask(one, session, one.asker === undefined ? session.shelf : this.#one(this.#shelves, one.asker))
    }
    // The last ones, because most of the sessions of the first ones have ended.
    const { session, upload } = this.#one(this.#writers.slice(-6), one.at)
    const isHeld = !session.isGone && session.done === undefined && session.upload.epoch === upload.epoch
    const isUnchanged = isHeld && session.upload.isUnclaimed
    if (one.act === 'record') {
      const inlineBytes = new Uint8Array(upload.epoch + 1).fill(7)
      const object: UnfinishedObject = { sizeBytes: inlineBytes.length, notes: undefined, inlineBytes }
      const receivedDigest = digestOf(inlineBytes)
      if (isUnchanged) {
        session.upload = { ...session.upload, object, receivedDigest, epoch: upload.epoch + 1 }
        this.#writers.push({ session, upload: session.upload })
      }
      return [isUnchanged, await uploads.recordUnclaimed(upload, object, receivedDigest)]
    }
    if (one.act === 'release') {
      const object: UnfinishedObject = { sizeBytes: one.sizeBytes, notes: one.notes }
      const receivedDigest = one.hasDigest ? digestOf('received') : undefined
      if (isHeld) {
        session.upload = { ...session.upload, object, receivedDigest, isUnclaimed: false }
        session.hasTurn = false
      }
      return [isHeld, await uploads.releaseTurn(upload, object, receivedDigest)]
    }
    if (one.act === 'hold') return [isHeld, await uploads.holdsTurn(upload)]
    if (one.act === 'renew') {
      if (isHeld) {
        session.upload = { ...session.upload, isUnclaimed: false }
        session.hasTurn = one.isLong
      }
      return [isHeld, await uploads.renewTurn(upload, one.isLong ? hourMs : 0)]
    }
    const digest = digestOf(upload.id)
    const isCommitted = upload.isUnclaimed ? isUnchanged : isHeld
    if (isCommitted) session.done = digest
    return [isCommitted, await this.#metadata.transaction((tables) => tables.uploads.commit(upload, digest))]
  }

  async #begin(shelf: Shelf, hasTurn: boolean) {
    const [id, storageKey] = [freshUploadId(), freshKey()]
    const { repository, owner } = shelf
    const object = { sizeBytes: 0, notes: undefined }
    const upload: Upload = {
      id,
      repository,
      storageKey,
      object,
      receivedDigest: undefined,
      epoch: 0,
      isUnclaimed: !hasTurn,
    }
    const session = { shelf, upload, hasTurn, closing: undefined, done: undefined, isGone: false }
    this.#sessions.push(session)
    this.#writers.push({ session, upload })
    const created = await this.#metadata.transaction((tables) =>
      tables.uploads.create(repository, owner.subject, id, storageKey, hasTurn ? hourMs : 0),
    )
    return [upload, created] as const
  }

  async #ask(one: Extract<Step, { asker: unknown }>, session: Session, { owner }: Shelf) {
    const { id } = session.upload
    const isOpen = !session.isGone && session.done === undefined
    const mayTouch = isOpen && (one.act === 'remove any' || session.shelf.owner === owner)
    if (one.act !== 'claim') {
      if (mayTouch) this.#remove(session)
      const removed = await this.#metadata.transaction(({ uploads }) =>
        one.act === 'remove' ? uploads.remove(owner, id) : uploads.removeAny(id),
      )
      return [mayTouch, removed] as const
    }
    const closing = one.isClosing ? digestOf('closing') : undefined
    const claimed = this.#metadata.uploads.claimTurn(owner, id, one.isLong ? hourMs : 0, closing)
    if (!mayTouch || session.hasTurn) return [undefined, await claimed] as const
    session.upload = { ...session.upload, epoch: session.upload.epoch + 1, isUnclaimed: false }
    session.hasTurn = one.isLong
    session.closing = closing
    this.#writers.push({ session, upload: session.upload })
    return [session.upload, await claimed] as const
  }

  #remove(session: Session): void {
    session.isGone = true
    const { storageKey, object, isUnclaimed } = session.upload
    if (session.done === undefined && !isUnclaimed) this.#trash.push({ storageKey, notes: object.notes })
  }

  async #expire(isDone: boolean) {
    const expired = this.#sessions.filter(
      ({ isGone, done, hasTurn }) => !isGone && (isDone ? done !== undefined : done === undefined && !hasTurn),
    )
    for (const session of expired) this.#remove(session)
    const ages = { ...noAges, [isDone ? 'uploadIdleMs' : 'uploadDoneMs']: hourMs, uploadMaxMs: hourMs }
    const count = await this.#metadata.transaction(({ garbage }) => garbage.expireUploads(ages, 100))
    return [expired.length, count] as const
  }

  /** Compares all that the store tells with the model. */
  async compare(): Promise<void> {
    const { uploads, garbage } = this.#metadata
    for (const session of this.#sessions) {
      const { upload, done, hasTurn, closing, isGone, shelf } = session
      if (isGone || done !== undefined) {
        // What has ended can be neither claimed nor removed.
        expect(await uploads.claimTurn(shelf.owner, upload.id, hourMs)).toBeUndefined()
        expect(await this.#metadata.transaction((tables) => tables.uploads.remove(shelf.owner, upload.id))).toBe(false)
        expect(await this.#metadata.transaction((tables) => tables.uploads.removeAny(upload.id))).toBe(false)
      }
      for (const { owner } of this.#shelves) {
        const { inlineBytes: _, ...object } = upload.object
        const shown = upload.isUnclaimed ? upload : { ...upload, object }
        const open: UploadState = { open: shown, closing: hasTurn ? closing : undefined }
        const expected = isGone || owner !== shelf.owner ? undefined : done === undefined ? open : { done }
        expect(await uploads.find(owner, upload.id)).toEqual(expected)
      }
    }
    const open = this.#sessions.filter(({ isGone, done }) => !isGone && done === undefined)
    for (const { repository, owner } of this.#shelves) {
      const counted = open.filter(
        ({ shelf, upload, hasTurn }) => shelf.repository.id === repository.id && (upload.epoch > 0 || !hasTurn),
      )
      const ofSubject = counted.filter(({ shelf }) => shelf.owner.subject === owner.subject).length
      const count = await uploads.countOpen(repository, owner.subject)
      expect(count).toEqual({ ofRepository: counted.length, ofSubject })
    }
    for (const filter of [{}, { account: 'acme' }, { repository: 'app' }, { account: 'acme', repository: 'app' }]) {
      const { account, repository }: { account?: string; repository?: string } = filter
      const listed = await uploads.listOpen({ account, repository }, 100)
      const shown = open.flatMap(({ shelf: { accountId, owner }, upload, hasTurn }) => {
        const of = {
          account: accountId === this.#shelves[0]?.accountId ? 'acme' : 'rival',
          repository: owner.repository,
        }
        const isShown = (account ?? of.account) === of.account && (repository ?? of.repository) === of.repository
        const { sizeBytes } = upload.object
        return isShown ? [{ id: upload.id, ...of, subject: owner.subject, sizeBytes, isWritten: hasTurn }] : []
      })
      expect(new Set(listed.map(({ ageMs: _age, idleMs: _idle, ...rest }) => rest))).toEqual(new Set(shown))
    }
    const byKey = (one: { storageKey: string }, other: { storageKey: string }) =>
      one.storageKey < other.storageKey ? -1 : 1
    const trash = await garbage.claimTrashed(0, 0, 1_000)
    expect(trash.toSorted(byKey)).toEqual(this.#trash.toSorted(byKey))
  }
}
