/** What is sent of an object. */
export interface S3Body {
  readonly bytes: Uint8Array | Blob
  /** Of the bytes, in hex. Computed where the checksum mode wants it and it is not given, and so is the next. */
  readonly sha256: string | undefined
  /** Of the bytes: base64 of the four bytes, as S3 writes it. */
  readonly crc32: string | undefined
}

/** What is smaller goes out as it is; the HTTP client makes a copy of it. */
const copiedMax = 256 * 1024
const pieceBytes = 256 * 1024

export function sizeOfBody({ bytes }: S3Body): number {
  return bytes instanceof Blob ? bytes.size : bytes.length
}

/**
 * A body for one attempt. Large ones are streamed: given as they are, an array would be copied as a whole, and a file
 * would be read into memory as a whole where the connection is encrypted.
 */
export function toRequestBody({ bytes }: S3Body): Uint8Array<ArrayBufferLike> | ReadableStream<Uint8Array> {
  if (bytes instanceof Blob) return bytes.stream()
  return bytes.length <= copiedMax ? bytes : streamOf(bytes)
}

function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(sink) {
        if (at < bytes.length) sink.enqueue(bytes.subarray(at, at + pieceBytes))
        at += pieceBytes
        if (at >= bytes.length) sink.close()
      },
    },
    { highWaterMark: 0 },
  )
}

export async function sha256Of(body: S3Body): Promise<string> {
  if (body.sha256 !== undefined) return body.sha256
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const piece of piecesOf(body)) hasher.update(piece)
  return hasher.digest('hex')
}

export async function crc32Of(body: S3Body): Promise<string> {
  if (body.crc32 !== undefined) return body.crc32
  let crc = 0
  for await (const piece of piecesOf(body)) crc = Bun.hash.crc32(piece, crc)
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc)
  return bytes.toString('base64')
}

function piecesOf({ bytes }: S3Body): ReadableStream<Uint8Array> {
  return bytes instanceof Blob ? bytes.stream() : streamOf(bytes)
}
