import type { StorageKey } from '../../ports/blob-store.ts'

/** A piece that the store has, and what it answered for it. */
export interface SentPart {
  readonly etag: string
  readonly sizeBytes: number
}

/** Bytes behind the last part, too few for a part: an object by itself. */
export interface Tail {
  readonly key: StorageKey
  readonly sizeBytes: number
}

/** A multipart upload under way: the name that it will have, and its parts in order. */
export interface Multipart {
  readonly key: StorageKey
  readonly uploadId: string
  readonly parts: readonly SentPart[]
}

/**
 * All that is needed to go on with an unfinished object, on this machine or another: our own list of parts (what a store
 * lists may lack what was just written), and the tail. Kept in the row of the upload, so that both change at once.
 */
export interface UploadNotes {
  readonly multipart: Multipart | undefined
  /** In the order of their bytes. */
  readonly tails: readonly Tail[]
  /** Tails that were replaced. They are not needed once these notes are recorded; before that, they are. */
  readonly replaced: readonly StorageKey[]
}

export const noNotes: UploadNotes = { multipart: undefined, tails: [], replaced: [] }

export function totalBytes({ multipart, tails }: UploadNotes): number {
  return bytesOf(multipart?.parts ?? []) + bytesOf(tails)
}

export function bytesOf(stored: readonly { readonly sizeBytes: number }[]): number {
  return stored.reduce((sum, one) => sum + one.sizeBytes, 0)
}

/** Ten thousand parts fit into half a megabyte: short names. */
interface Written {
  readonly name?: string
  readonly id?: string
  readonly parts?: readonly (readonly [etag: string, sizeBytes: number])[]
  /** Name and size, name and size. */
  readonly tail?: readonly (string | number)[]
  readonly old?: readonly string[]
}

export function writeNotes({ multipart, tails, replaced }: UploadNotes): string {
  const written: Written = {
    ...(multipart && {
      name: multipart.key,
      id: multipart.uploadId,
      parts: multipart.parts.map(({ etag, sizeBytes }) => [etag, sizeBytes] as const),
    }),
    ...(tails.length > 0 && { tail: tails.flatMap(({ key, sizeBytes }) => [key, sizeBytes]) }),
    ...(replaced.length > 0 && { old: replaced }),
  }
  return JSON.stringify(written)
}

/** Only ever what `writeNotes` made: it comes from our own row. */
export function readNotes(notes: string | undefined): UploadNotes {
  if (notes === undefined) return noNotes
  const { name, id, parts = [], tail = [], old = [] } = JSON.parse(notes) as Written
  return {
    multipart:
      name === undefined || id === undefined
        ? undefined
        : { key: name as StorageKey, uploadId: id, parts: parts.map(([etag, sizeBytes]) => ({ etag, sizeBytes })) },
    tails: tail.flatMap((key, at) =>
      at % 2 === 0 ? [{ key: key as StorageKey, sizeBytes: Number(tail[at + 1]) }] : [],
    ),
    replaced: old as readonly StorageKey[],
  }
}
