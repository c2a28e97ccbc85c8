// The doubtful Complete: whatever is heard of it, the object itself tells whether it is there.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { MultipartUpload } from '../../../../src/adapters/blobs-s3/multipart-upload.ts'
import { PartBufferPool, usualPlan } from '../../../../src/adapters/blobs-s3/part-buffers.ts'
import type { StorageKey } from '../../../../src/ports/blob-store.ts'
import { errorXml, faultOf, openS3Client, TestTime } from '../../../support/s3/s3-client.ts'
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

/** Completes and looks go through these, each in its order; the last of each stands for all that follow. */
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

describe('a Complete', () => {
  test('is looked after even when all is well', async () => {
    play([well], [there])
    expect(await complete()).toBe(true)
    expect(methods()).toBe('POST HEAD')
  })

  test('names the parts with their ETags as they were given', async () => {
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
  ])('that says well and leaves %s has failed', async (_, look, code, words) => {
    play([well], [look])
    const fault = await faultOf(complete())
    expect([fault.code, fault.message, methods()]).toEqual([
      code,
      `CompleteMultipartUpload: ${code} ${words}`,
      'POST HEAD',
    ])
  })

  test('may send spaces for longer than an answer may take', async () => {
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

  test('the object is looked for, and is enough', async () => {
    play([doubt], [there])
    expect(await run()).toBe(false)
    expect(methods()).toBe('POST HEAD')
    expect(time.sleeps).toEqual([])
  })

  test('it is done again where there is no object', async () => {
    play([doubt, well], [absent, there])
    await run()
    expect(methods()).toBe('POST HEAD POST HEAD')
    expect(time.sleeps).toEqual([100])
  })

  test('the upload may be gone because the first one worked', async () => {
    play([doubt, error(404, 'NoSuchUpload')], [absent, there])
    await run()
    expect(methods()).toBe('POST HEAD POST HEAD')
  })

  test('an upload that is gone is waited for: the first one may be at work still', async () => {
    play([doubt, error(404, 'NoSuchUpload')], [absent, absent, there])
    await run()
    expect(methods()).toBe('POST HEAD POST HEAD POST HEAD')
  })

  test('an object of another size is a fault', async () => {
    play([doubt], [head(1_001)])
    expect((await faultOf(run())).code).toBe('wrong-size')
    expect(methods()).toBe('POST HEAD')
  })

  test('it ends some time', async () => {
    play([doubt], [absent])
    await faultOf(run())
    expect(methods()).toBe('POST HEAD POST HEAD POST HEAD POST HEAD')
    expect(time.sleeps).toEqual([100, 200, 400])
  })
})

describe('an upload that is gone', () => {
  test('was completed before, where its object stands', async () => {
    play([error(404, 'NoSuchUpload')], [there])
    await complete()
    expect(methods()).toBe('POST HEAD')
  })

  test('has ended for good, where there is none and nothing was in doubt', async () => {
    play([error(404, 'NoSuchUpload')], [absent])
    expect((await faultOf(complete())).code).toBe('ended')
    expect(methods()).toBe('POST HEAD')
  })

  test('may still become an object, where there is none and an earlier Complete was in doubt', async () => {
    play([reset, error(404, 'NoSuchUpload')], [absent])
    expect((await faultOf(complete())).code).toBe('NoSuchUpload')
    expect(methods()).toBe('POST HEAD POST HEAD POST HEAD POST HEAD')
  })

  test('is not asked for where a part was found in the object already', async () => {
    play([well], [there])
    expect(await complete(['"one"', ''])).toBe(false)
    expect(methods()).toBe('HEAD')

    play([well], [absent])
    expect((await faultOf(complete(['"one"', '']))).code).toBe('NoSuchUpload')
    expect(methods()).toBe('HEAD')
  })
})

describe('what is refused', () => {
  test.each([
    [400, 'InvalidPart'],
    [400, 'EntityTooSmall'],
    [400, 'InvalidPartOrder'],
    [403, 'AccessDenied'],
  ])('stays so: %d %s', async (status, code) => {
    play([error(status, code)], [there])
    expect((await faultOf(complete())).code).toBe(code)
    expect(methods()).toBe('POST')
  })

  test('within a 200 for good is not done again', async () => {
    play([error(200, 'InvalidPart')], [there])
    const fault = await faultOf(complete())
    expect([fault.status, fault.code, methods()]).toEqual([200, 'InvalidPart', 'POST'])
  })

  test('after a doubt is looked after all the same', async () => {
    play([reset, error(400, 'InvalidPart')], [absent, there])
    await complete()
    expect(methods()).toBe('POST HEAD POST HEAD')
  })
})

test('a look that fails is tried again, and its fault is told', async () => {
  play([well], [(answer) => answer.send(500), there])
  await complete()
  expect(methods()).toBe('POST HEAD HEAD')

  play([well], [(answer) => answer.send(403)])
  const fault = await faultOf(complete())
  expect([fault.status, fault.message]).toEqual([403, 'HeadObject: 403 unexplained'])
})
