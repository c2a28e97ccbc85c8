import { describe, expect, test } from 'bun:test'
import { projectRoot } from '../../support/basics/test-project.ts'

const request = `{ id: 'r1', method: 'GET', path: '/v2/a', status: 200, ms: 1.25, bytes: 7, who: 'abc' }`

/** Runs the statements in a process of their own, with `openLog` and the errors of the house at hand. */
export async function printedBy(statements: string): Promise<string> {
  const program = [
    "import { openLog } from './src/lib/log.ts'",
    "import { Unavailable } from './src/oci/errors.ts'",
    statements,
    'void Unavailable',
  ]
  const child = Bun.spawn([process.execPath, '-e', program.join('\n')], {
    cwd: projectRoot,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const printed = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(`the process failed; it printed ${printed}`)
  return printed
}

async function linesOf(statements: string): Promise<string[]> {
  return (await printedBy(statements)).split('\n').slice(0, -1)
}

describe('lines for machines', () => {
  test('are JSON, one a line, with time, level, message and fields', async () => {
    const lines = await linesOf(`
      const log = openLog({ format: 'json', level: 'info' })
      log.write('info', 'request', ${request})
      log.write('warn', 'two\\nlines "quoted"', { path: '/a\\nb' })
      log.flush()
    `)
    const [first, second] = lines.map((line) => JSON.parse(line))

    expect(lines.length).toBe(2)
    expect(Number.isNaN(Date.parse(first.time))).toBe(false)
    expect(first).toMatchObject({ msg: 'request', id: 'r1', status: 200, ms: 1.25, who: 'abc' })
    expect(second).toMatchObject({ msg: 'two\nlines "quoted"', path: '/a\nb' })
    expect(first.level).not.toEqual(second.level)
  })

  test('show an error with its causes', async () => {
    const [line = ''] = await linesOf(`
      const log = openLog({ format: 'json', level: 'info' })
      const cause = new Error('disk full')
      log.write('error', 'request failed', { error: new Unavailable('blob-store', { cause }) })
    `)

    expect(JSON.parse(line).error).toMatchObject({
      name: 'Unavailable',
      message: 'the blob store is unavailable',
      cause: { message: 'disk full' },
    })
  })

  test('are all there when the process ends without a flush of its own', async () => {
    const lines = await linesOf(`
      const log = openLog({ format: 'json', level: 'info' })
      for (let n = 0; n < 1000; n += 1) log.write('info', 'line', { n })
    `)

    expect(lines.map((line) => JSON.parse(line).n)).toEqual(Array.from({ length: 1000 }, (_, n) => n))
  })
})

describe('lines for a terminal', () => {
  test('say what happened in a few words', async () => {
    const lines = await linesOf(`
      const textLayouts = { request: ({ method, path }) => method + ' ' + path }
      const log = openLog({ format: 'text', level: 'info', textLayouts })
      log.write('info', 'request', ${request})
      log.write('info', 'ready', { url: 'http://127.0.0.1:5000' })
      log.write('warn', 'slow', { of: { a: 1 } })
      log.flush()
    `)

    expect(lines.map((line) => line.replace(/^\d\d:\d\d:\d\d /, ''))).toEqual([
      'GET /v2/a',
      'ready url=http://127.0.0.1:5000',
      'WARN slow of={"a":1}',
    ])
  })

  test('show the stack of an error', async () => {
    const printed = await printedBy(`
      const log = openLog({ format: 'text', level: 'info' })
      log.write('error', 'request failed', { error: new Error('boom') })
      log.flush()
    `)

    expect(printed).toMatch(/ERROR request failed .*Error: boom\n\s+at /s)
  })
})

test('the level decides what is worth a line', async () => {
  const write = "for (const level of ['debug', 'info', 'warn', 'error']) log.write(level, level)"
  const count = async (level: string) =>
    (await linesOf(`const log = openLog({ format: 'json', level: '${level}' }); ${write}; log.flush()`)).length

  expect(await Promise.all(['debug', 'info', 'warn', 'error', 'silent'].map(count))).toEqual([4, 3, 2, 1, 0])
})
