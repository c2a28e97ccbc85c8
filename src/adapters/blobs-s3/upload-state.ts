import type { StorageKey } from '../../ports/blob-store.ts'

/** A part that S3 has stored. */
export interface StoredPart {
  /** Made by `formatPartTag`. */
  readonly etag: string
  readonly sizeBytes: number
}

/** Bytes after the last part that are too few for a part. They are stored as an object of their own. */
export interface Tail {
  readonly key: StorageKey
  readonly sizeBytes: number
}

/** A multipart upload, with the key of its object and its parts in order. */
interface Multipart {
  readonly key: StorageKey
  readonly uploadId: string
  readonly parts: readonly StoredPart[]
}

/**
 * What is needed to continue an unfinished object, on this machine or another. It is stored as the notes of the upload, in the
 * same row as the size, so that both change at once.
 */
export interface UploadState {
  readonly multipart: Multipart | undefined
  /** In the order of their bytes. */
  readonly tails: readonly Tail[]
  /** Tails that were replaced. They can be removed once this state is stored, and not before. */
  readonly replaced: readonly StorageKey[]
}

export const emptyState: UploadState = { multipart: undefined, tails: [], replaced: [] }

export function totalBytes({ multipart, tails }: UploadState): number {
  return bytesOf(multipart?.parts ?? []) + bytesOf(tails)
}

export function bytesOf(stored: readonly { readonly sizeBytes: number }[]): number {
  return stored.reduce((sum, one) => sum + one.sizeBytes, 0)
}

/** The stored form. Its names are short, so that 10,000 parts need only half a megabyte. */
interface StoredState {
  readonly name?: string
  readonly id?: string
  readonly parts?: readonly (readonly [etag: string, sizeBytes: number])[]
  /** Keys and sizes in turn. */
  readonly tail?: readonly (string | number)[]
  readonly old?: readonly string[]
}

export function formatNotes({ multipart, tails, replaced }: UploadState): string {
  const stored: StoredState = {
    ...(multipart && {
      name: multipart.key,
      id: multipart.uploadId,
      parts: multipart.parts.map(({ etag, sizeBytes }) => [etag, sizeBytes] as const),
    }),
    ...(tails.length > 0 && { tail: tails.flatMap(({ key, sizeBytes }) => [key, sizeBytes]) }),
    ...(replaced.length > 0 && { old: replaced }),
  }
  return JSON.stringify(stored)
}

/** `notes` come from our own row, so `formatNotes` has made them. */
export function parseNotes(notes: string | undefined): UploadState {
  if (notes === undefined) return emptyState
  const { name, id, parts = [], tail = [], old = [] } = JSON.parse(notes) as StoredState
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
