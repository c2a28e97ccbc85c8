// What the S3 stub holds, and the rules of multipart uploads.
import { createHash, randomBytes } from 'node:crypto'
import { type PartToJoin, S3Refusal } from './s3-stub-xml.ts'

export interface Encryption {
  readonly algorithm: string
  readonly kmsKeyId: string | undefined
}

export interface StoredObject {
  readonly bytes: Uint8Array
  /** Without quotes: MD5, and for joined parts MD5 of the parts' MD5s with their number. */
  readonly etag: string
  readonly modifiedAt: number
  readonly contentType: string
  readonly encryption: Encryption | undefined
}

interface StoredPart {
  readonly bytes: Uint8Array
  readonly etag: string
  readonly crc32: string | undefined
  readonly modifiedAt: number
}

/** How the parts of an upload are summed, as the upload was begun. */
export interface PartChecksums {
  readonly algorithm: 'CRC32'
  readonly type: 'COMPOSITE' | 'FULL_OBJECT'
}

export interface Upload {
  readonly id: string
  readonly name: string
  readonly startedAt: number
  readonly contentType: string
  readonly encryption: Encryption | undefined
  readonly checksums: PartChecksums | undefined
  readonly parts: Map<number, StoredPart>
}

export type NewUpload = Omit<Upload, 'id' | 'parts'>

const partsMax = 10_000

export class StubBucket {
  readonly objects = new Map<string, StoredObject>()
  readonly uploads = new Map<string, Upload>()
  readonly #partBytesMin: number

  constructor(partBytesMin: number) {
    this.#partBytesMin = partBytesMin
  }

  put(name: string, object: Omit<StoredObject, 'etag'>): StoredObject {
    const stored = { ...object, etag: md5(object.bytes).toString('hex') }
    this.objects.set(name, stored)
    return stored
  }

  get(name: string): StoredObject {
    const object = this.objects.get(name)
    if (object === undefined) throw new S3Refusal(404, 'NoSuchKey')
    return object
  }

  begin(upload: NewUpload): Upload {
    // All characters that a server may use: a client that puts an id into an address must encode it.
    const id = `2~+/${randomBytes(12).toString('base64')}==`
    const begun = { ...upload, id, parts: new Map() }
    this.uploads.set(id, begun)
    return begun
  }

  getUpload(name: string, id: string): Upload {
    const upload = this.uploads.get(id)
    if (upload === undefined || upload.name !== name) throw new S3Refusal(404, 'NoSuchUpload')
    return upload
  }

  putPart(upload: Upload, number: string, bytes: Uint8Array, crc32: string | undefined, nowMs: number): StoredPart {
    if (!/^\d{1,5}$/.test(number) || Number(number) < 1 || Number(number) > partsMax)
      throw new S3Refusal(400, 'InvalidArgument')
    if ((upload.checksums === undefined) !== (crc32 === undefined)) throw new S3Refusal(400, 'InvalidRequest')
    const part = { bytes, etag: md5(bytes).toString('hex'), crc32, modifiedAt: nowMs }
    upload.parts.set(Number(number), part)
    return part
  }

  complete(upload: Upload, wanted: readonly PartToJoin[], nowMs: number): StoredObject {
    const parts = wanted.map(({ number, etag, crc32 }, index) => {
      if (index > 0 && number <= (wanted[index - 1]?.number ?? 0)) throw new S3Refusal(400, 'InvalidPartOrder')
      const part = upload.parts.get(number)
      if (part === undefined || part.etag !== etag || (crc32 !== undefined && crc32 !== part.crc32))
        throw new S3Refusal(400, 'InvalidPart')
      if (upload.checksums?.type === 'COMPOSITE' && crc32 === undefined) throw new S3Refusal(400, 'InvalidRequest')
      return part
    })
    if (parts.slice(0, -1).some(({ bytes }) => bytes.length < this.#partBytesMin))
      throw new S3Refusal(400, 'EntityTooSmall')
    const { name, contentType, encryption } = upload
    const tags = md5(Buffer.concat(parts.map(({ bytes }) => md5(bytes)))).toString('hex')
    const object: StoredObject = {
      bytes: Buffer.concat(parts.map(({ bytes }) => bytes)),
      etag: `${tags}-${parts.length}`,
      modifiedAt: nowMs,
      contentType,
      encryption,
    }
    this.objects.set(name, object)
    this.uploads.delete(upload.id)
    return object
  }
}

export function md5(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest()
}
