// The faults of the fault proxy, one by one: each is what some S3 server, or some network, has done to somebody.

import type { S3Operation } from '../s3/s3-operation.ts'
import { writeXml } from '../s3/s3-stub-xml.ts'
import { framingOfRequest, WireEnd, type WireReader, writeTo } from './http-wire.ts'
import { type Drip, type Ending, type Passage, relay } from './s3-fault-relay.ts'

export type FaultName =
  | '500'
  | '500 after effect'
  | '503 SlowDown'
  /** The connection is reset before the server hears of the request. */
  | 'reset before'
  /** The server gets `afterBytes` of the body (half of it where that is not said); then both connections are reset. */
  | 'reset mid-request-body'
  /** The client gets the head and `afterBytes` of the body (half of it), then a reset. */
  | 'reset mid-response-body'
  /** The same with a connection that is closed as if all had come. */
  | 'end mid-response-body'
  /** The server answers; the client hears nothing but a reset. */
  | 'reset after effect'
  /** No answer ever; the server does not hear of the request. */
  | 'timeout before effect'
  /** No answer ever; the server has done what it asks. */
  | 'timeout after effect'
  /** CompleteMultipartUpload says 200 before it knows how it ends, and then that it failed. Nothing was done. */
  | '200 with error'
  /** It says that it failed, and has not. */
  | '200 with error after effect'
  /** Of PutObject and UploadPart. */
  | 'wrong ETag'
  /** One byte too many. */
  | 'wrong size on HEAD'
  /** The answer comes in drips. */
  | 'slow'

export interface FaultDetails {
  readonly afterBytes?: number
  readonly retryAfterSeconds?: number
  readonly drip?: Drip
}

export type Fault = (passage: Passage, details: FaultDetails) => Promise<Ending>

/** Faults that mean something to these operations alone. */
export const faultPlaces: Readonly<Partial<Record<FaultName, readonly S3Operation[]>>> = {
  '200 with error': ['CompleteMultipartUpload'],
  '200 with error after effect': ['CompleteMultipartUpload'],
  'wrong ETag': ['PutObject', 'UploadPart'],
  'wrong size on HEAD': ['HeadObject'],
}

export const faults: Readonly<Record<FaultName, Fault>> = {
  '500': async (passage) => {
    await takeBody(passage)
    return sayError(passage, '500 Internal Server Error', 'InternalError')
  },
  '500 after effect': async (passage) => {
    await relay(passage, { isSwallowed: true })
    return sayError(passage, '500 Internal Server Error', 'InternalError')
  },
  '503 SlowDown': async (passage, { retryAfterSeconds }) => {
    await takeBody(passage)
    const line = retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`
    return sayError(passage, '503 Slow Down', 'SlowDown', line)
  },
  'reset before': async () => {
    throw new WireEnd('reset before')
  },
  'reset mid-request-body': (passage, { afterBytes }) => {
    const framing = framingOfRequest(passage.head)
    const half = typeof framing === 'number' ? Math.floor(framing / 2) : 1
    return relay(passage, { requestBytesMax: afterBytes ?? half })
  },
  'reset mid-response-body': async (passage, { afterBytes }) => {
    await relay(passage, { responseBytesMax: afterBytes ?? 'half' })
    throw new WireEnd('reset in the middle of the answer')
  },
  'end mid-response-body': async (passage, { afterBytes }) => {
    await relay(passage, { responseBytesMax: afterBytes ?? 'half' })
    return 'close'
  },
  'reset after effect': async (passage) => {
    await relay(passage, { isSwallowed: true })
    throw new WireEnd('reset after effect')
  },
  'timeout before effect': ({ client }) => sayNothing(client),
  'timeout after effect': async (passage) => {
    await relay(passage, { isSwallowed: true })
    return sayNothing(passage.client)
  },
  '200 with error': async (passage) => {
    await takeBody(passage)
    return sayLateError(passage)
  },
  '200 with error after effect': async (passage) => {
    await relay(passage, { isSwallowed: true })
    return sayLateError(passage)
  },
  'wrong ETag': (passage) =>
    relay(passage, { changeHead: (head) => head.replace(/^(etag: *"?)[^"\r]+/im, `$1${'0badf00d'.repeat(4)}`) }),
  'wrong size on HEAD': (passage) =>
    relay(passage, {
      changeHead: (head) => head.replace(/^(content-length: *)(\d+)/im, (_, name, size) => name + (Number(size) + 1)),
    }),
  slow: (passage, { drip }) => relay(passage, { drip: drip ?? { bytes: 64, pauseMs: 20 } }),
}

async function takeBody({ client, head }: Passage): Promise<void> {
  if (head.header('expect') !== undefined) await writeTo(client.socket, 'HTTP/1.1 100 Continue\r\n\r\n')
  for await (const _ of client.readBody(framingOfRequest(head)));
}

/** Until the client has had enough. */
async function sayNothing(client: WireReader): Promise<Ending> {
  while ((await client.next()) !== undefined);
  return 'close'
}

function errorText(code: string): string {
  return writeXml('Error', { Code: code, Message: 'This is a fault that was asked for.', RequestId: 'fault' })
}

async function sayError({ client, method }: Passage, status: string, code: string, lines = ''): Promise<Ending> {
  const text = errorText(code)
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/xml\r\n${lines}Content-Length: ${text.length}\r\n\r\n`
  await writeTo(client.socket, method === 'HEAD' ? head : head + text)
  return 'keep'
}

/** As S3 does it: the head at once, blanks while it works, and how it ended at last. */
async function sayLateError({ client }: Passage): Promise<Ending> {
  const text = errorText('InternalError')
  const end = text.indexOf('\n')
  const chunks = [`${text.slice(0, end)}\n`, ' ', ' ', text.slice(end + 1), '']
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nTransfer-Encoding: chunked\r\n\r\n'
  await writeTo(client.socket, head)
  for (const chunk of chunks) await writeTo(client.socket, `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  return 'keep'
}
