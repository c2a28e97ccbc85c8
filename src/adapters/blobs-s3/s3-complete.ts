import type { S3Body } from './s3-body.ts'
import type { S3Calls } from './s3-calls.ts'
import { codeIn, S3Fault } from './s3-fault.ts'
import { readDocument } from './s3-lists.ts'
import { escapeXml } from './s3-xml.ts'

export interface Completion {
  readonly name: string
  readonly uploadId: string
  /** As `partTag` gave them; the first is of part 1. */
  readonly tags: readonly string[]
  readonly sizeBytes: number
  readonly triesMax: number
  /** Of the object as it stands, or undefined where there is none. */
  sizeOf(name: string): Promise<number | undefined>
}

const operation = 'CompleteMultipartUpload'

/** What the server has to do for one part, and for one byte, is bounded by these. */
const msPerPart = 10
const bytesPerMs = 1024 * 1024

/** The ETag, and where the upload is checked by CRC-32, what S3 wants to be told of the part once more. */
export function partTag(etag: string, crc32: string | undefined): string {
  return crc32 === undefined ? etag : `${etag} crc32=${crc32}`
}

/**
 * Makes the object of its parts, and looks whether it is there. A Complete may report an error behind a 200, fail after
 * it has done its work, or have been done by an earlier one of which nothing was heard: after every doubt the object
 * decides. False where it did: it has the right name and the right size, and nobody has told what it was made of. Where
 * there is neither upload nor object, and no doubt, the fault is `ended`: the store, or a rule of its bucket, took the parts.
 */
export async function completeUpload(calls: S3Calls, completion: Completion): Promise<boolean> {
  const body = documentOf(completion.tags)
  let wasInDoubt = false
  for (let tries = 1; ; tries += 1) {
    const fault = await complete(calls, completion, body)
    if (fault === undefined) {
      await expectSize(completion)
      return true
    }
    const isGone = fault.code === 'NoSuchUpload'
    const isInDoubt = isGone || fault.isTransient || fault.code === 'malformed'
    if ((isInDoubt || wasInDoubt) && (await isThere(completion))) return false
    // An earlier one that is still at work may have taken the upload, and not be done with the object.
    if (isGone && !wasInDoubt) throw wasFound(completion) ? fault : endedFault(operation, fault)
    wasInDoubt ||= isInDoubt
    if (!isInDoubt || tries >= completion.triesMax || !(await calls.pause(tries, fault))) throw fault
  }
}

/** A part that was found stored in the finished object has no ETag: that object was there a moment ago. */
function wasFound({ tags }: Completion): boolean {
  return tags.includes('')
}

/** An upload that was there once, and of which nothing is left. */
export function endedFault(operation: string, cause: S3Fault): S3Fault {
  return new S3Fault(operation, { code: 'ended', words: 'the upload has ended, and nothing is there of it', cause })
}

async function complete(calls: S3Calls, completion: Completion, body: S3Body): Promise<S3Fault | undefined> {
  if (wasFound(completion)) return new S3Fault(operation, { code: 'NoSuchUpload' })
  try {
    const { text } = await calls.send({
      operation,
      method: 'POST',
      name: completion.name,
      query: [['uploadId', completion.uploadId]],
      body,
      isDocument: true,
      isOnceOnly: true,
      triesMax: 1,
      extraTimeMs: completion.tags.length * msPerPart + Math.ceil(completion.sizeBytes / bytesPerMs),
    })
    const code = codeIn(text)
    if (code !== undefined) return new S3Fault(operation, { status: 200, code })
    readDocument(operation, text, 'CompleteMultipartUploadResult')
    return undefined
  } catch (error) {
    if (error instanceof S3Fault) return error
    throw error
  }
}

async function isThere(completion: Completion): Promise<boolean> {
  const sizeBytes = await completion.sizeOf(completion.name)
  if (sizeBytes === undefined) return false
  checkSize(completion, sizeBytes)
  return true
}

async function expectSize(completion: Completion): Promise<void> {
  const sizeBytes = await completion.sizeOf(completion.name)
  // A look can lag behind: that is no end of the upload.
  if (sizeBytes === undefined) throw new S3Fault(operation, { code: 'absent', words: 'nothing is there after it' })
  checkSize(completion, sizeBytes)
}

function checkSize(completion: Completion, sizeBytes: number): void {
  if (sizeBytes === completion.sizeBytes) return
  const words = `${sizeBytes} bytes are there, not ${completion.sizeBytes}`
  throw new S3Fault(operation, { code: 'wrong-size', words })
}

function documentOf(tags: readonly string[]): S3Body {
  const parts = tags.map((tag, index) => {
    const [etag = '', crc32] = tag.split(' crc32=')
    const checksum = crc32 === undefined ? '' : `<ChecksumCRC32>${escapeXml(crc32)}</ChecksumCRC32>`
    return `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag>${checksum}</Part>`
  })
  const namespace = 'http://s3.amazonaws.com/doc/2006-03-01/'
  const text = `<CompleteMultipartUpload xmlns="${namespace}">${parts.join('')}</CompleteMultipartUpload>`
  return { bytes: Buffer.from(text), sha256: undefined, crc32: undefined }
}
