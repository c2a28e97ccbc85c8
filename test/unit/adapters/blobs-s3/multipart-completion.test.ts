// The completion of a multipart upload: after every doubtful response, the object itself decides.
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { MultipartUpload } from '../../../../src/adapters/blobs-s3/multipart-upload.ts'
import { PartBufferPool, usualPlan } from '../../../../src/adapters/blobs-s3/part-buffers.ts'
import type { S3Error } from '../../../../src/adapters/blobs-s3/s3-response.ts'
import type { StorageKey } from '../../../../src/ports/blob-store.ts'
import { errorXml, openS3Client, s3ErrorOf, TestTime } from '../../../support/s3/s3-client.ts'
import { type Script, type ScriptedAnswer, startScriptedServer } from '../../../support/server/scripted-server.ts'

const server = await startScriptedServer()
afterAll(() => server.stop())

let time = new TestTime()
beforeEach(() => {
  time = new TestTime()
})

const key = '0193a7c2-0000-7000-8000-000000000000-0011223344556677' as StorageKey
const sizeBytes = 1_000
const shortMs = 150
const done = '<CompleteMultipartUploadResult><ETag>"x-2"</ETag></CompleteMultipartUploadResult>'

type Step = (answer: ScriptedAnswer) => void

const well: Step = (answer) => answer.send(200, done)
const silence: Step = () => undefined
const reset: Step = (answer) => answer.reset()
const head =
  (bytes: number | undefined): Step =>
  (answer) =>
    bytes === undefined ? answer.send(404) : answer.begin(200, { 'content-length': String(bytes) })
const error =
  (status: number, code: string): Step =>
  (answer) =>
    answer.send(status, errorXml(code))
const there = head(sizeBytes)
const absent = head(undefined)

/** The responses to POST and to HEAD, in order. The last of each is repeated. */
function play(completes: readonly Step[], looks: readonly Step[]): void {
  const counts = { POST: 0, HEAD: 0 }
  const script: Script = ({ method }, answer) => {
    if (method !== 'POST' && method !== 'HEAD') throw new Error(`${method} is no part of this`)
    const steps = method === 'POST' ? completes : looks
    const step = steps[Math.min(counts[method], steps.length - 1)]
    counts[method] += 1
    step?.(answer)
  }
  server.follow(script)
}

/** Whether S3 has confirmed it. */
async function complete(tags = ['"one"', '"two"'], attemptTimeoutMs = 5_000): Promise<boolean> {
  const needs = {
    client: openS3Client(server.url, { attemptTimeoutMs }, time),
    prefix: '',
    buffers: new PartBufferPool({
      plan: usualPlan,
      checksum: 'none',
      memoryBuffersMax: 1,
      queueMax: 1,
      waitMaxMs: 1,
      folder: '/nowhere',
    }),
    runInBackground: () => undefined,
  }
  const parts = tags.map((etag) => ({ etag, sizeBytes: 1 }))
  const { isCertain } = await new MultipartUpload(key, needs, { key, uploadId: 'id', parts }).complete(sizeBytes)
  return isCertain
}

function methods(): string {
  return server.requests.map(({ method }) => method).join(' ')
}

test('names the parts with their ETags unchanged', async () => {
  play([well], [there])
  await complete(['"a&b"', 'plain', '"c" crc32=AAAAAA=='])
  expect(server.requests[0]?.body.toString()).toBe(
    '<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
      '<Part><PartNumber>1</PartNumber><ETag>&#34;a&#38;b&#34;</ETag></Part>' +
      '<Part><PartNumber>2</PartNumber><ETag>plain</ETag></Part>' +
      '<Part><PartNumber>3</PartNumber><ETag>&#34;c&#34;</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part>' +
      '</CompleteMultipartUpload>',
  )
  expect(server.requests[0]?.target).toBe(`/layers/00/${key}?uploadId=id`)
})

test('S3 may send spaces for longer than a response may take', async () => {
  const spaces = async (answer: ScriptedAnswer) => {
    answer.begin(200, { connection: 'close' })
    for (let n = 0; n < 5; n += 1) {
      await answer.write(' ')
      await Bun.sleep(shortMs / 2)
    }
    await answer.write(`<?xml version="1.0"?>${done}`)
    answer.close()
  }
  play([(answer) => void spaces(answer)], [there])
  await complete(undefined, shortMs)
  expect(methods()).toBe('POST HEAD')
})

const doubts: readonly (readonly [string, Step])[] = [
  ['silence', silence],
  ['a reset', reset],
  ['500', error(500, 'InternalError')],
  ['502', (answer) => answer.send(502, '<html></html>')],
  ['503', error(503, 'SlowDown')],
  ['an error within a 200', error(200, 'InternalError')],
  ['an error behind spaces', (answer) => answer.send(200, `\n   ${errorXml('InternalError')}`)],
  ['an empty 200', (answer) => answer.send(200)],
  ['a 200 that is something else', (answer) => answer.send(200, '<html></html>')],
  ['half a 200', (answer) => answer.send(200, done.slice(0, 40))],
  [
    'a 200 that is cut',
    (answer) => {
      answer.begin(200, { 'content-length': '5000' })
      void answer.write(done).then(() => answer.reset())
    },
  ],
]

test.each(doubts)(
  '%s is a doubt: the object is enough, and without it the request is repeated',
  async (words, doubt) => {
    const attemptTimeoutMs = words === 'silence' ? shortMs : 5_000
    play([doubt], [there])
    expect([await complete(undefined, attemptTimeoutMs), methods(), time.sleeps]).toEqual([false, 'POST HEAD', []])

    play([doubt, well], [absent, there])
    expect([await complete(undefined, attemptTimeoutMs), methods()]).toEqual([true, 'POST HEAD POST HEAD'])
    expect(time.sleeps).toEqual([100])
  },
)

/** The responses to POST, with the code of the error that they cause if no object decides. */
const posts = {
  well: [well, ''],
  doubt: [error(500, 'InternalError'), 'InternalError'],
  rejection: [error(400, 'InvalidPart'), 'InvalidPart'],
  'rejection with status 200': [error(200, 'EntityTooSmall'), 'EntityTooSmall'],
  gone: [error(404, 'NoSuchUpload'), 'NoSuchUpload'],
} as const
const heads = { there, absent, wrong: head(999) } as const
type Attempt = readonly [post: keyof typeof posts, head: keyof typeof heads]

/** What must come of the attempts, the last of which is repeated: the requests, and whether S3 has confirmed it, or the error. */
function predict(attempts: readonly Attempt[]): [requests: string, result: boolean | string] {
  const requests: string[] = []
  let wasInDoubt = false
  for (let tries = 1; ; tries += 1) {
    const [post, head] = attempts[Math.min(tries, attempts.length) - 1] ?? ['well', 'there']
    requests.push('POST')
    const [, code] = posts[post]
    const isFinal = post.startsWith('rejection')
    if (isFinal && !wasInDoubt) return [requests.join(' '), code]
    requests.push('HEAD')
    if (head === 'wrong') return [requests.join(' '), 'wrong-size']
    if (head === 'there') return [requests.join(' '), post === 'well']
    if (post === 'well') return [requests.join(' '), 'absent']
    // Nothing was in doubt, so the store or a rule of the bucket has removed the upload.
    if (post === 'gone' && !wasInDoubt) return [requests.join(' '), 'ended']
    if (isFinal || tries === 4) return [requests.join(' '), code]
    wasInDoubt = true
  }
}

test('any attempts end as the table of their results says', async () => {
  const seen = new Set<unknown>()
  for (const doubts of [0, 1, 2, 3]) {
    for (const post of Object.keys(posts) as (keyof typeof posts)[]) {
      for (const head of Object.keys(heads) as (keyof typeof heads)[]) {
        const before = Array.from({ length: doubts }, () => ['doubt', 'absent'] as const)
        const attempts: readonly Attempt[] = [...before, [post, head]]
        time = new TestTime()
        play(
          attempts.map(([one]) => posts[one][0]),
          attempts.map(([, one]) => heads[one]),
        )
        const result = await complete().catch((fault: S3Error) => fault.code)
        expect([attempts, methods(), result]).toEqual([attempts, ...predict(attempts)])
        expect(time.sleeps).toEqual([100, 200, 400].slice(0, methods().split('POST').length - 2))
        seen.add(result)
      }
    }
  }
  expect(seen.size).toBe(9)
})

test('a completion whose part was found in the object is not requested: only the object counts', async () => {
  play([well], [there])
  expect(await complete(['"one"', ''])).toBe(false)
  expect(methods()).toBe('HEAD')

  play([well], [absent])
  expect((await s3ErrorOf(complete(['"one"', '']))).code).toBe('NoSuchUpload')
  expect(methods()).toBe('HEAD')
})

test('a HEAD that fails is repeated, and its error is thrown', async () => {
  play([well], [(answer) => answer.send(500), there])
  await complete()
  expect(methods()).toBe('POST HEAD HEAD')

  play([well], [(answer) => answer.send(403)])
  const error = await s3ErrorOf(complete())
  expect([error.status, error.message]).toEqual([403, 'HeadObject: 403 unexplained'])
})
