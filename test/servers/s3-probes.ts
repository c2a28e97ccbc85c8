// Questions to an S3 server, each put in a place of its own; what comes back is what can be compared.
import { generatedBytes } from '../support/basics/generated-bytes.ts'
import {
  askS3,
  readS3,
  type S3Answer,
  type S3Request,
  type S3Server,
  xmlField,
  xmlFields,
} from '../support/s3/s3-server.ts'
import { presign, sha256Hex } from '../support/s3/s3-signature.ts'
import { freshPrefix } from '../support/s3/test-s3.ts'

export interface Asker {
  readonly server: S3Server
  /** Of this question alone. */
  readonly prefix: string
  ask(method: string, target: string, rest?: Omit<S3Request, 'method' | 'target'>): Promise<S3Answer>
}

export type Probe = (asker: Asker) => Promise<unknown>

const mebibyte = 1_024 * 1_024
const part = generatedBytes(5 * mebibyte, 5)

export function askerOf(server: S3Server): Asker {
  const prefix = freshPrefix()
  return {
    server,
    prefix,
    async ask(method, target, rest = {}) {
      const name = target.startsWith('?') || target === '' ? target : prefix + target
      return readS3(askS3(server, { method, target: name, ...rest }))
    },
  }
}

function count(text: string, name: string): number {
  return text.split(`<${name}>`).length - 1
}

async function begin({ ask }: Asker, name: string): Promise<string> {
  return encodeURIComponent(xmlField((await ask('POST', `${name}?uploads`)).text, 'UploadId') ?? '')
}

async function putPart({ ask }: Asker, name: string, id: string, number: number, body: string | typeof part) {
  const { headers, code } = await ask('PUT', `${name}?partNumber=${number}&uploadId=${id}`, { body })
  return headers.get('etag') ?? code
}

/** Begins an upload and sends these parts, numbered from 1. */
async function beginWith(asker: Asker, name: string, ...bodies: readonly (string | typeof part)[]) {
  const id = await begin(asker, name)
  const parts: (readonly [number, string])[] = []
  for (const [index, body] of bodies.entries()) {
    parts.push([index + 1, await putPart(asker, name, id, index + 1, body)])
  }
  return { id, parts }
}

/** A signed address of the object, which is valid for a minute. */
function addressOf({ server, prefix }: Asker, name: string, timeMs = Date.now()): Promise<string> {
  const url = `${server.url}/${server.bucket}/${prefix}${name}`
  return presign({ method: 'GET', url, region: server.region, lifetimeSeconds: 60, timeMs }, server)
}

async function complete({ ask }: Asker, name: string, id: string, parts: readonly (readonly [number, string])[]) {
  const items = parts.map(([number, etag]) => `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`)
  const body = `<CompleteMultipartUpload>${items.join('')}</CompleteMultipartUpload>`
  return ask('POST', `${name}?uploadId=${id}`, { body })
}

export const probes: Readonly<Record<string, Probe>> = {
  'an object is kept, shown, read and removed': async ({ ask }) => {
    const put = await ask('PUT', 'o', { body: 'hello' })
    const head = await ask('HEAD', 'o')
    const got = await ask('GET', 'o')
    const removed = [(await ask('DELETE', 'o')).status, (await ask('DELETE', 'o')).status]
    const shown = [put, head, got].map(({ status, headers }) => [status, headers.get('etag')])
    return [shown, head.headers.get('content-length'), got.text, removed, (await ask('HEAD', 'o')).status]
  },
  'what is absent has a name': async ({ ask, server }) => {
    const other = await askS3({ ...server, bucket: 'no-such-bucket' }, { method: 'GET', target: 'x' })
    return [(await ask('GET', 'absent')).code, (await readS3(other)).code, (await ask('HEAD', '')).status]
  },
  'a range is a part, and one past the end is refused': async ({ ask }) => {
    await ask('PUT', 'r', { body: '0123456789' })
    const get = async (range: string) => {
      const { code, headers, text, status } = await ask('GET', 'r', { headers: { range } })
      return status === 206 ? [code, headers.get('content-range'), text] : code
    }
    return [await get('bytes=2-4'), await get('bytes=8-99'), await get('bytes=-3'), await get('bytes=10-')]
  },
  'a name may hold what must be escaped': async ({ ask, prefix }) => {
    const put = await ask('PUT', 'a%20b%2Bc%26d%3De', { body: 'x' })
    const list = await ask('GET', `?list-type=2&prefix=${encodeURIComponent(prefix)}`)
    return [put.status, xmlField(list.text, 'Key')?.slice(prefix.length)]
  },
  'If-None-Match guards what is there': async ({ ask }) => {
    const put = async (body: string) => (await ask('PUT', 'once', { body, headers: { 'if-none-match': '*' } })).code
    return [await put('first'), await put('second'), (await ask('GET', 'once')).text]
  },
  'parts are joined in order': async (asker) => {
    const id = await begin(asker, 'joined')
    const last = await putPart(asker, 'joined', id, 9, 'the end')
    const first = await putPart(asker, 'joined', id, 4, part)
    const listed = await asker.ask('GET', `joined?uploadId=${id}`)
    const done = await complete(asker, 'joined', id, [
      [4, first],
      [9, last],
    ])
    const head = await asker.ask('HEAD', 'joined')
    const whole = await asker.ask('GET', 'joined', { headers: { range: `bytes=${part.length - 1}-` } })
    const etag = head.headers.get('etag')
    const tail = [whole.text.length, whole.text.endsWith('the end')]
    return [count(listed.text, 'Part'), done.code, head.headers.get('content-length'), etag, tail]
  },
  'an upload that is completed is gone': async (asker) => {
    const { id, parts } = await beginWith(asker, 'done', 'x')
    await complete(asker, 'done', id, parts)
    const list = await asker.ask('GET', `?uploads&prefix=${encodeURIComponent(asker.prefix)}`)
    return [count(list.text, 'Upload'), await putPart(asker, 'done', id, 1, 'x')]
  },
  'an upload that is completed cannot be listed': async (asker) => {
    const { id, parts } = await beginWith(asker, 'done', 'x')
    await complete(asker, 'done', id, parts)
    return (await asker.ask('GET', `done?uploadId=${id}`)).code
  },
  'an upload that is completed cannot be completed': async (asker) => {
    const { id, parts } = await beginWith(asker, 'done', 'x')
    return [(await complete(asker, 'done', id, parts)).code, (await complete(asker, 'done', id, parts)).code]
  },
  'parts in disorder are refused': async (asker) => {
    const { id, parts } = await beginWith(asker, 'disorder', part, 'x')
    return (await complete(asker, 'disorder', id, parts.toReversed())).code
  },
  'a part that has changed is refused': async (asker) => {
    const { id, parts } = await beginWith(asker, 'changed', 'old')
    const next = await putPart(asker, 'changed', id, 1, 'new')
    const refused = await complete(asker, 'changed', id, parts)
    return [refused.code, (await complete(asker, 'changed', id, [[1, next]])).code]
  },
  'a part that never came is refused': async (asker) => {
    const { id, parts } = await beginWith(asker, 'absent', 'x')
    return (await complete(asker, 'absent', id, [...parts, [2, parts[0]?.[1] ?? '']])).code
  },
  'a small part before the last is refused': async (asker) => {
    const { id, parts } = await beginWith(asker, 'small', 'small', 'last')
    return (await complete(asker, 'small', id, parts)).code
  },
  'a part has a number from 1 to 10000': async (asker) => {
    const id = await begin(asker, 'numbers')
    return [await putPart(asker, 'numbers', id, 10_001, 'x'), (await putPart(asker, 'numbers', id, 10_000, 'x')).length]
  },
  'an upload that is aborted is gone': async (asker) => {
    const id = await begin(asker, 'aborted')
    await putPart(asker, 'aborted', id, 1, 'x')
    const aborted = (await asker.ask('DELETE', `aborted?uploadId=${id}`)).status
    const list = await asker.ask('GET', `?uploads&prefix=${encodeURIComponent(asker.prefix)}`)
    return [aborted, count(list.text, 'Upload'), await putPart(asker, 'aborted', id, 1, 'x')]
  },
  'aborting what is gone is refused by name': async (asker) => {
    const id = await begin(asker, 'aborted')
    await asker.ask('DELETE', `aborted?uploadId=${id}`)
    return (await asker.ask('DELETE', `aborted?uploadId=${id}`)).code
  },
  'uploads are listed below their prefix, page by page': async (asker) => {
    for (const name of ['u1', 'u2', 'u3', 'other']) await begin(asker, name)
    const prefix = encodeURIComponent(`${asker.prefix}u`)
    const seen: unknown[] = []
    let markers = ''
    for (let page = 0; page < 5; page += 1) {
      const { text } = await asker.ask('GET', `?uploads&prefix=${prefix}&max-uploads=2${markers}`)
      seen.push(xmlFields(text, 'Key').map((key) => key.slice(asker.prefix.length)))
      if (xmlField(text, 'IsTruncated') !== 'true') break
      const [key, id] = [xmlField(text, 'NextKeyMarker') ?? '', xmlField(text, 'NextUploadIdMarker') ?? '']
      markers = `&key-marker=${encodeURIComponent(key)}&upload-id-marker=${encodeURIComponent(id)}`
    }
    return seen
  },
  'objects are listed below their prefix, page by page': async ({ ask, prefix }) => {
    for (const name of ['l1', 'l2', 'l3', 'other']) await ask('PUT', name, { body: name })
    const seen: unknown[] = []
    let token = ''
    for (let page = 0; page < 5; page += 1) {
      const { text } = await ask('GET', `?list-type=2&max-keys=2&prefix=${encodeURIComponent(`${prefix}l`)}${token}`)
      seen.push(xmlFields(text, 'Key').map((key) => key.slice(prefix.length)))
      if (xmlField(text, 'IsTruncated') !== 'true') break
      token = `&continuation-token=${encodeURIComponent(xmlField(text, 'NextContinuationToken') ?? '')}`
    }
    return seen
  },
  'a signature of another secret is refused': async ({ server }) =>
    (await readS3(askS3({ ...server, secretKey: 'guessed' }, { method: 'GET', target: '?list-type=2' }))).code,
  'an unknown key is refused': async ({ server }) =>
    (await readS3(askS3({ ...server, accessKey: 'NOBODY' }, { method: 'GET', target: '?list-type=2' }))).code,
  'a clock that is an hour late is refused': async (asker) =>
    (await readS3(fetch(await addressOf(asker, 'x', Date.now() - 3_600_000)))).code,
  'a body of another hash is refused': async ({ ask }) => {
    const headers = { 'x-amz-content-sha256': sha256Hex('another') }
    return [(await ask('PUT', 'hash', { body: 'body', headers })).code, (await ask('HEAD', 'hash')).status]
  },
  'a body of another MD5 is refused': async ({ ask }) => {
    const headers = { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' }
    return [(await ask('PUT', 'md5', { body: 'body', headers })).code, (await ask('HEAD', 'md5')).status]
  },
  'a body may be unsigned': async ({ ask }) => {
    const headers = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }
    return [(await ask('PUT', 'open', { body: 'body', headers })).code, (await ask('GET', 'open')).text]
  },
  'a signed address gives the object, and parts of it': async (asker) => {
    await asker.ask('PUT', 'signed', { body: '0123456789' })
    const whole = await fetch(await addressOf(asker, 'signed'))
    const some = await fetch(await addressOf(asker, 'signed'), { headers: { range: 'bytes=3-' } })
    return [whole.status, await whole.text(), some.status, await some.text()]
  },
  'a signed address that is bent is refused': async (asker) => {
    await asker.ask('PUT', 'bent', { body: 'x' })
    const bent = (await addressOf(asker, 'bent')).replace('Expires=60', 'Expires=61')
    return (await readS3(fetch(bent))).code
  },
}
