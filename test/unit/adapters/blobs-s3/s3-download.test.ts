// Downloads that break and go on, and that wait for their reader.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { NoSlot } from '../../../../src/lib/slots.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { until } from '../../../support/clocks/until.ts'
import { errorXml, openS3Client, readAll, s3ErrorOf, TestTime } from '../../../support/s3/s3-client.ts'
import { type Script, type ScriptedAnswer, startScriptedServer } from '../../../support/server/scripted-server.ts'

const server = await startScriptedServer()
afterAll(() => server.stop())

let time = new TestTime()
beforeEach(() => {
  time = new TestTime()
})

const name = '00/object'
const shortMs = 150
const content = crypto.getRandomValues(Buffer.alloc(50_000))

/** What is asked for, of the content. */
function wanted(headers: Readonly<Record<string, string>>): { first: number; last: number; isPart: boolean } {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers['range'] ?? '') ?? []
  return { first: Number(first ?? 0), last: Number(last ?? content.length - 1), isPart: first !== undefined }
}

function beginContent(headers: Readonly<Record<string, string>>, answer: ScriptedAnswer): Buffer {
  const { first, last, isPart } = wanted(headers)
  const length = String(last - first + 1)
  if (!isPart) answer.begin(200, { 'content-length': length })
  else answer.begin(206, { 'content-length': length, 'content-range': `bytes ${first}-${last}/${content.length}` })
  return content.subarray(first, last + 1)
}

const answerWhole: Script = ({ headers }, answer) => void answer.write(beginContent(headers, answer))

/** So many bytes at once, and then what the test says. */
function answerPart(bytes: number, then: (answer: ScriptedAnswer) => void): Script {
  return ({ headers }, answer) => {
    void answer.write(beginContent(headers, answer).subarray(0, bytes)).then(() => then(answer))
  }
}

function ranges(): (string | undefined)[] {
  return server.requests.map(({ headers }) => headers['range'])
}

/** A little later: what comes together with the end of its connection is lost with it, and fetched again. */
const breaks: readonly (readonly [string, (answer: ScriptedAnswer) => void])[] = [
  ['a reset', (answer) => setTimeout(() => answer.reset(), 20)],
  ['an end', (answer) => setTimeout(() => answer.close(), 20)],
  ['silence', () => undefined],
]

describe.each(breaks)('after %s', (words, then) => {
  const attemptTimeoutMs = words === 'silence' ? shortMs : 5_000
  const open = (range?: { first: number; last: number }) =>
    openS3Client(server.url, { attemptTimeoutMs }, time).open(name, content.length, range)

  test.each([
    [undefined, content, 3, [undefined, 'bytes=7000-49999', 'bytes=14000-49999', 'bytes=21000-49999']],
    [{ first: 100, last: 30_000 }, content.subarray(100, 30_001), 1, ['bytes=100-30000', 'bytes=7100-30000']],
  ])('a download of %p goes on where it broke', async (range, expected, times, asked) => {
    const part = answerPart(7_000, then)
    server.follow((request, answer, nth) => (nth <= times ? part : answerWhole)(request, answer, nth))
    expect((await readAll(await open(range))).equals(expected)).toBe(true)
    expect(ranges()).toEqual(asked)
  })

  test('any number of breaks is borne while bytes come in between', async () => {
    server.follow(answerPart(4_000, then))
    expect((await readAll(await open())).equals(content)).toBe(true)
    // What comes together with a break may be lost with it, and is asked for once more.
    expect(server.requests.length).toBeGreaterThanOrEqual(13)
    // Then two come behind each other without a byte, now and then; far more than four come in all.
    expect(time.sleeps.length).toBe(server.requests.length - 1)
    expect(Math.max(...time.sleeps)).toBeLessThanOrEqual(400)
  })

  test('so many without one are not', async () => {
    server.follow((request, answer, nth) => answerPart(nth === 1 ? 10 : 0, then)(request, answer, nth))
    const error = await s3ErrorOf(readAll(await open()))
    expect(['connection', 'timeout']).toContain(error.code)
    expect(ranges()).toEqual([undefined, ...Array.from({ length: 3 }, () => 'bytes=10-49999')])
    expect(time.sleeps).toEqual([100, 200, 400])
  })
})

describe('a download that goes on', () => {
  const goOn =
    (second: Script): Script =>
    (request, answer, nth) =>
      (nth === 1 ? answerPart(10, (answer) => answer.close()) : second)(request, answer, nth)
  const open = () => openS3Client(server.url, {}, time).open(name, content.length)

  test.each<[string, Script, string]>([
    ['the object was removed', (_, answer) => answer.send(404, errorXml('NoSuchKey')), 'NoSuchKey'],
    [
      'another object is there',
      (_, answer) => answer.send(206, 'x'.repeat(40), { 'content-range': 'bytes 10-49/50' }),
      'NoSuchKey',
    ],
    [
      'S3 gives another range',
      (_, answer) => answer.send(206, content.subarray(9), { 'content-range': 'bytes 9-49999/50000' }),
      'malformed',
    ],
    ['it is rejected', (_, answer) => answer.send(403, errorXml('AccessDenied')), 'AccessDenied'],
  ])('fails if %s', async (_, second, code) => {
    server.follow(goOn(second))
    const error = await s3ErrorOf(readAll(await open()))
    expect([error.code, server.requests.length]).toEqual([code, 2])
    if (code === 'NoSuchKey') expect(error.message).toBe('GetObject: NoSuchKey removed while it was read')
  })

  test('fails if more bytes come than were announced, and does not pass them on', async () => {
    server.follow(({ headers }, answer) => {
      const { first } = wanted(headers)
      answer.begin(206, { 'content-length': '60', 'content-range': `bytes ${first}-49999/50000` })
      void answer.write('x'.repeat(60))
    })
    const download = openS3Client(server.url, {}, time).open(name, content.length, { first: 49_990, last: 49_999 })
    expect((await s3ErrorOf(readAll(await download))).code).toBe('malformed')
    expect(server.requests.length).toBe(1)
  })

  test('bears errors that pass', async () => {
    server.follow((request, answer, nth) => {
      if (nth === 2) return answer.send(503, errorXml('SlowDown'))
      return (nth === 1 ? answerPart(10, (answer) => answer.close()) : answerWhole)(request, answer, nth)
    })
    expect((await readAll(await open())).equals(content)).toBe(true)
    expect(time.sleeps).toEqual([100, 200])
  })
})

type Outcome = 'absent' | 'NoSuchBucket' | 'malformed'

const range = { first: 0, last: 9 }
const answerText =
  (status: number, body: string, contentRange?: string): Script =>
  (_, answer) =>
    answer.send(status, body, contentRange === undefined ? {} : { 'content-range': `bytes ${contentRange}` })
const beginWhole =
  (headers: Readonly<Record<string, string>>): Script =>
  (_, answer) =>
    answer.begin(200, headers)

test.each<[string, typeof range | undefined, Script, Outcome]>([
  ['no object', range, answerText(404, errorXml('NoSuchKey')), 'absent'],
  ['an object that ends before the range', range, answerText(416, errorXml('InvalidRange')), 'absent'],
  ['an object with one byte too many', range, answerText(206, 'x'.repeat(10), '0-9/50001'), 'absent'],
  ['an object with one byte too few', range, answerText(206, 'x'.repeat(10), '0-9/49999'), 'absent'],
  ['no bucket', range, answerText(404, errorXml('NoSuchBucket')), 'NoSuchBucket'],
  ['a part without saying which', range, answerText(206, 'x'.repeat(10)), 'malformed'],
  ['another part', range, answerText(206, 'x'.repeat(10), '1-10/50000'), 'malformed'],
  ['another part that begins at the same byte', range, answerText(206, 'x'.repeat(9), '0-8/50000'), 'malformed'],
  ['the whole object instead of the range', range, beginWhole({ 'content-length': '50000' }), 'malformed'],
  ['a whole object with one byte too many', undefined, beginWhole({ 'content-length': '50001' }), 'absent'],
  ['a whole object with one byte too few', undefined, beginWhole({ 'content-length': '49999' }), 'absent'],
  ['a whole object without a length', undefined, beginWhole({ connection: 'close' }), 'malformed'],
])('a response with %s', async (_, range, script, outcome) => {
  server.follow(script)
  const opened = openS3Client(server.url, {}, time).open(name, content.length, range)
  if (outcome === 'absent') expect(await opened).toBeUndefined()
  else expect((await s3ErrorOf(opened)).code).toBe(outcome)
})

test('an object without bytes is there, and its stream ends', async () => {
  server.follow((_, answer) => answer.send(200))
  expect((await readAll(await openS3Client(server.url, {}, time).open(name, 0))).length).toBe(0)
})

describe('a reader', () => {
  test('that is slow is not held against S3, and stops the sender', async () => {
    const totalBytes = 256 * 1024 * 1024
    let sentBytes = 0
    const chunk = Buffer.alloc(64 * 1024)
    const flood = async (answer: ScriptedAnswer) => {
      answer.begin(200, { 'content-length': String(totalBytes) })
      while (answer.isOpen && sentBytes < totalBytes) {
        await answer.write(chunk)
        sentBytes += chunk.length
      }
    }
    const answers: ScriptedAnswer[] = []
    server.follow((_, answer) => {
      answers.push(answer)
      void flood(answer)
    })
    const client = openS3Client(server.url, { attemptTimeoutMs: shortMs }, time)
    const reader = (await client.open(name, totalBytes))?.getReader()
    await reader?.read()
    let before = -1
    // Still for longer than S3 may take.
    while (before !== sentBytes) {
      before = sentBytes
      await Bun.sleep(shortMs * 3)
    }
    expect(sentBytes).toBeLessThan(32 * 1024 * 1024)
    expect((await reader?.read())?.value?.length).toBeGreaterThan(0)
    expect(server.requests.length).toBe(1)
    await reader?.cancel()
    await until('the connection of a reader that went away ends', () => answers[0]?.isOpen === false)
  })

  test('that goes away while S3 is silent ends the download at once', async () => {
    const answers: ScriptedAnswer[] = []
    server.follow(answerPart(10, (answer) => answers.push(answer)))
    const client = openS3Client(server.url, {}, time)
    const reader = (await client.open(name, content.length))?.getReader()
    await reader?.read()
    const waiting = reader?.read()
    await Bun.sleep(20)
    await reader?.cancel()
    expect((await waiting)?.done).toBe(true)
    await until('the connection ends', () => answers[0]?.isOpen === false)
    expect(server.requests.length).toBe(1)
  })
})

describe('downloads', () => {
  const held: Script = answerPart(10, () => undefined)
  const settings = { requestsMax: 4, queueMax: 0 }

  test('leave something of the requests to the others', async () => {
    server.follow((request, answer, nth) => (request.method === 'GET' ? held(request, answer, nth) : answer.send(204)))
    const client = openS3Client(server.url, settings, time)
    const open = () => client.open(name, content.length)
    const three = [await open(), await open(), await open()]
    expect(await errorOf(open())).toBeInstanceOf(NoSlot)
    await client.remove(name)

    for (const stream of three) await stream?.cancel()
    await (await open())?.cancel()
  })

  test.each([
    ['read', async (stream: ReadableStream<Uint8Array> | undefined) => void (await readAll(stream)), answerWhole],
    ['broken', async (stream) => void (await s3ErrorOf(readAll(stream))), answerPart(0, (answer) => answer.close())],
    ['cancelled', async (stream) => stream?.cancel(), held],
    ['not there', async () => undefined, (_, answer) => answer.send(404)],
    ['refused', async () => undefined, (_, answer) => answer.send(403)],
  ] as readonly (readonly [string, (stream: ReadableStream<Uint8Array> | undefined) => Promise<void>, Script])[])(
    'give back their turn when they are %s',
    async (_, end, script) => {
      server.follow(script)
      const client = openS3Client(server.url, { ...settings, requestsMax: 1 }, time)
      for (let n = 0; n < 3; n += 1) await end(await client.open(name, content.length).catch(() => undefined))
      server.follow((_, answer) => answer.send(204))
      await client.remove(name)
      expect(server.requests.length).toBe(1)
    },
  )

  test('that are read to their end leave a connection that is used again', async () => {
    server.follow(answerWhole)
    const client = openS3Client(server.url, {}, time)
    for (let n = 0; n < 3; n += 1) await readAll(await client.open(name, content.length))
    expect(new Set(server.requests.map(({ connection }) => connection)).size).toBe(1)
  })

  test.each([
    ['never ends', () => undefined],
    ['has more bytes', (answer: ScriptedAnswer) => void answer.write('1\r\nx\r\n')],
  ])('close the connection if the body %s behind the last byte', async (_, then) => {
    let answers: ScriptedAnswer | undefined
    server.follow(async (_, answer) => {
      answers = answer
      answer.begin(206, { 'transfer-encoding': 'chunked', 'content-range': 'bytes 0-9/50000' })
      await answer.write('a\r\n0123456789\r\n')
      then(answer)
    })
    const client = openS3Client(server.url, { attemptTimeoutMs: shortMs }, time)
    const bytes = await readAll(await client.open(name, content.length, { first: 0, last: 9 }))
    expect(bytes.toString()).toBe('0123456789')
    await until('the connection is closed', () => answers?.isOpen === false)
  })
})
