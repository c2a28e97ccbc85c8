// The completion of a multipart upload: after every doubtful response, the object itself decides.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { MultipartUpload } from '../../../../src/adapters/blobs-s3/multipart-upload.ts'
import { PartBufferPool, usualPlan } from '../../../../src/adapters/blobs-s3/part-buffers.ts'
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

describe('a completion', () => {
  test('is checked with a HEAD even if S3 confirms it', async () => {
    play([well], [there])
    expect(await complete()).toBe(true)
    expect(methods()).toBe('POST HEAD')
  })

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

  test.each([
    ['another size', head(999), 'wrong-size', 'the object has 999 bytes instead of 1000'],
    ['nothing', absent, 'absent', 'no object exists afterwards'],
  ])('that S3 confirms and that leaves %s has failed', async (_, look, code, words) => {
    play([well], [look])
    const error = await s3ErrorOf(complete())
    expect([error.code, error.message, methods()]).toEqual([
      code,
      `CompleteMultipartUpload: ${code} ${words}`,
      'POST HEAD',
    ])
  })

  test('may send spaces for longer than a response may take', async () => {
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

describe.each(doubts)('after %s', (words, doubt) => {
  const attemptTimeoutMs = words === 'silence' ? shortMs : 5_000
  const run = () => complete(undefined, attemptTimeoutMs)

  test('an existing object is enough', async () => {
    play([doubt], [there])
    expect(await run()).toBe(false)
    expect(methods()).toBe('POST HEAD')
    expect(time.sleeps).toEqual([])
  })

  test('the completion is repeated if there is no object', async () => {
    play([doubt, well], [absent, there])
    await run()
    expect(methods()).toBe('POST HEAD POST HEAD')
    expect(time.sleeps).toEqual([100])
  })

  test('the upload may not exist because the first attempt worked', async () => {
    play([doubt, error(404, 'NoSuchUpload')], [absent, there])
    await run()
    expect(methods()).toBe('POST HEAD POST HEAD')
  })

  test('the object is awaited if the upload does not exist: the first attempt may still run', async () => {
    play([doubt, error(404, 'NoSuchUpload')], [absent, absent, there])
    await run()
    expect(methods()).toBe('POST HEAD POST HEAD POST HEAD')
  })

  test('an object of another size is an error', async () => {
    play([doubt], [head(1_001)])
    expect((await s3ErrorOf(run())).code).toBe('wrong-size')
    expect(methods()).toBe('POST HEAD')
  })

  test('the attempts end', async () => {
    play([doubt], [absent])
    await s3ErrorOf(run())
    expect(methods()).toBe('POST HEAD POST HEAD POST HEAD POST HEAD')
    expect(time.sleeps).toEqual([100, 200, 400])
  })
})

describe('an upload that does not exist', () => {
  test('was completed before if its object exists', async () => {
    play([error(404, 'NoSuchUpload')], [there])
    await complete()
    expect(methods()).toBe('POST HEAD')
  })

  test('has ended if there is no object and nothing was in doubt', async () => {
    play([error(404, 'NoSuchUpload')], [absent])
    expect((await s3ErrorOf(complete())).code).toBe('ended')
    expect(methods()).toBe('POST HEAD')
  })

  test('may still become an object if an earlier completion was in doubt', async () => {
    play([reset, error(404, 'NoSuchUpload')], [absent])
    expect((await s3ErrorOf(complete())).code).toBe('NoSuchUpload')
    expect(methods()).toBe('POST HEAD POST HEAD POST HEAD POST HEAD')
  })

  test('is not requested if a part was found in the object', async () => {
    play([well], [there])
    expect(await complete(['"one"', ''])).toBe(false)
    expect(methods()).toBe('HEAD')

    play([well], [absent])
    expect((await s3ErrorOf(complete(['"one"', '']))).code).toBe('NoSuchUpload')
    expect(methods()).toBe('HEAD')
  })
})

describe('a rejection', () => {
  test.each([
    [400, 'InvalidPart'],
    [400, 'EntityTooSmall'],
    [400, 'InvalidPartOrder'],
    [403, 'AccessDenied'],
  ])('is final: %d %s', async (status, code) => {
    play([error(status, code)], [there])
    expect((await s3ErrorOf(complete())).code).toBe(code)
    expect(methods()).toBe('POST')
  })

  test('with status 200 is not repeated', async () => {
    play([error(200, 'InvalidPart')], [there])
    const found = await s3ErrorOf(complete())
    expect([found.status, found.code, methods()]).toEqual([200, 'InvalidPart', 'POST'])
  })

  test('after a doubt is checked with a HEAD', async () => {
    play([reset, error(400, 'InvalidPart')], [absent, there])
    await complete()
    expect(methods()).toBe('POST HEAD POST HEAD')
  })
})

test('a HEAD that fails is repeated, and its error is thrown', async () => {
  play([well], [(answer) => answer.send(500), there])
  await complete()
  expect(methods()).toBe('POST HEAD HEAD')

  play([well], [(answer) => answer.send(403)])
  const error = await s3ErrorOf(complete())
  expect([error.status, error.message]).toEqual([403, 'HeadObject: 403 unexplained'])
})
