// Standard output that is not read, or that cannot be written: the log loses lines, and the server goes on.
import { afterAll, describe, expect, test } from 'bun:test'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot, testApiKey } from '../support/basics/test-project.ts'
import { until } from '../support/clocks/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-log-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function readAvailable(descriptor: number): string {
  const buffer = Buffer.alloc(1 << 20)
  try {
    return buffer.toString('utf8', 0, readSync(descriptor, buffer))
  } catch {
    // EAGAIN: the pipe is empty.
    return ''
  }
}

/** A server that logs only to this descriptor. */
function serveTo(stdout: number, dataDir: string, workers: number) {
  return Bun.spawn([process.execPath, 'src/main.ts', 'serve'], {
    cwd: projectRoot,
    env: {
      ...process.env,
      BERTH_DATA_DIR: dataDir,
      BERTH_SERVER__PORT: '0',
      BERTH_SERVER__WORKERS: String(workers),
      BERTH_IDENTITY__ADMIN_API_KEY: testApiKey,
      BERTH_LOG__FORMAT: 'json',
      BERTH_LOG__BUFFER: '64KiB',
    },
    stdout,
    stderr: 'pipe',
  })
}

/** Standard error tells where it listens. */
async function addressToldBy(stderr: ReadableStream<Uint8Array>): Promise<string> {
  let printed = ''
  for await (const chunk of stderr) {
    printed += new TextDecoder().decode(chunk)
    const address = /ready at (http:\S+)/.exec(printed)?.[1]
    if (address !== undefined) return address
  }
  throw new Error(`the server did not start: ${printed}`)
}

const requests = 2_000

/** So many requests, each of which writes a line. */
async function ask(url: string): Promise<number> {
  let answered = 0
  for (let n = 0; n < requests; n += 20) {
    const batch = Array.from({ length: 20 }, () => fetch(`${url}/healthz`, { signal: AbortSignal.timeout(20_000) }))
    answered += (await Promise.all(batch)).filter(({ ok }) => ok).length
  }
  return answered
}

describe.each([1, 2])('a pipe that is not read, with %d workers', (workers) => {
  const path = join(folder, `pipe-${workers}`)

  test('stops no request, loses lines, tells how many once it is read, and does not keep the server from stopping', async () => {
    expect(Bun.spawnSync(['mkfifo', path]).success).toBe(true)
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(path, constants.O_WRONLY)
    const server = serveTo(writer, `${path}-data`, workers)
    closeSync(writer)
    try {
      let printed = ''
      const url = await addressToldBy(server.stderr)

      expect(await ask(url)).toBe(requests)

      const countLost = () =>
        [...printed.matchAll(/"msg":"log lines were lost".*?"lines":(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0)
      const countShown = () => [...printed.matchAll(/"msg":"request"/g)].length
      await until('each line is shown or counted as lost', () => {
        printed += readAvailable(reader)
        return countLost() + countShown() >= requests
      })
      expect([countLost() > 0, countLost() + countShown()]).toEqual([true, requests])
      for (const line of printed.trimEnd().split('\n')) JSON.parse(line)

      expect(await ask(url)).toBe(requests)
      server.kill('SIGTERM')
      expect(await server.exited).toBe(0)
    } finally {
      server.kill('SIGKILL')
      closeSync(reader)
    }
  }, 30_000)
})

describe('a log that cannot be written', () => {
  test.each([
    ['/dev/full', 1],
    ['a pipe whose reader is gone', 1],
    ['a pipe whose reader is gone', 2],
  ])('%s, %d workers: the server goes on', async (place, workers) => {
    const path = join(folder, `closed-${workers}`)
    if (place !== '/dev/full') expect(Bun.spawnSync(['mkfifo', path]).success).toBe(true)
    const reader = place === '/dev/full' ? undefined : openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(reader === undefined ? place : path, constants.O_WRONLY)
    if (reader !== undefined) closeSync(reader)
    const dataDir = join(folder, `unwritable-${reader}-${workers}`)
    const server = serveTo(writer, dataDir, workers)
    closeSync(writer)
    try {
      const url = await addressToldBy(server.stderr)
      expect(await ask(url)).toBe(requests)
      server.kill('SIGTERM')
      expect(await server.exited).toBe(0)
    } finally {
      server.kill('SIGKILL')
    }
  })
})
