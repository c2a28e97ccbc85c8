import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { ConnectionGate, pauseAfterCount } from '../../../src/http/connection-gate.ts'
import { openLog } from '../../../src/lib/log.ts'
import { until } from '../../support/clocks/until.ts'

const log = openLog({ format: 'json', level: 'error', bufferBytes: 1_024 })

test('the port closes when no descriptor is left, stays closed while the count fails, and opens when there is room', async () => {
  const counts = [10, 990, Number.POSITIVE_INFINITY, undefined, 990, undefined, 500]
  const seen: (number | undefined)[] = []
  const events: string[] = []
  const note = (what: string) => () => events.push(`${what} at ${seen.at(-1)}`)
  const count = () => {
    seen.push(seen.length < counts.length ? counts[seen.length] : 500)
    return seen.at(-1)
  }
  const gate = new ConnectionGate({ connectionsMax: 0 }, { close: note('closed'), open: note('opened') }, log, {
    count,
    max: () => 1_100,
  })

  await until('all counts are seen', () => seen.length > counts.length)
  gate.stop()

  expect(events).toEqual(['closed at Infinity', 'opened at 500'])
})

test('a slow count is made rarely, but at least every 5 s', () => {
  expect([0.002, 10, 82, 1_000].map(pauseAfterCount)).toEqual([100, 500, 4_100, 5_000])
})

test('a kernel that must list the descriptors tells their number, and Infinity when it finds none free', () => {
  // The size of /proc/self/fdinfo is 0, as that of /proc/self/fd is before Linux 6.2.
  const program = `
    import { openSync } from 'node:fs'
    import { countOpenFiles } from './src/lib/open-files.ts'
    const folder = '/proc/self/fdinfo'
    const before = countOpenFiles(folder)
    openSync('/dev/null')
    const after = countOpenFiles(folder)
    try { for (;;) openSync('/dev/null') } catch {}
    console.log(after - before, countOpenFiles(folder))`
  const { stdout } = Bun.spawnSync(['sh', '-c', 'ulimit -n 64 && exec "$@"', 'sh', process.execPath, '-e', program], {
    cwd: join(import.meta.dir, '../../..'),
  })

  expect(stdout.toString()).toBe('1 Infinity\n')
})
