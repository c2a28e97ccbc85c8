import { describe, expect, test } from 'bun:test'
import { MoveProgress } from '../../../src/cli/move-progress.ts'

function watch(isTTY: boolean) {
  const clock = { at: 0 }
  const written: string[] = []
  const output = { isTTY, write: (text: string | Uint8Array) => written.push(String(text)) > 0 }
  return { clock, written, progress: new MoveProgress(output, () => clock.at) }
}

const mebi = 1024 * 1024
const all = { blobs: 100, bytes: 1000 * mebi }

describe('the progress of a move', () => {
  test('is a line every five seconds if the output is not a terminal', () => {
    const { clock, written, progress } = watch(false)
    for (let second = 0; second <= 12; second += 1) {
      clock.at = second * 1_000
      progress.onProgress({ blobs: second, bytes: second * 10 * mebi }, all)
    }

    expect(written).toEqual([
      'berth: 0 of 100 blobs, 0 B of 1000.0 MiB\n',
      'berth: 5 of 100 blobs, 50.0 MiB of 1000.0 MiB, 10.0 MiB/s, 2 min left\n',
      'berth: 10 of 100 blobs, 100.0 MiB of 1000.0 MiB, 10.0 MiB/s, 2 min left\n',
    ])
    progress.end()
    expect(written.at(-1)).toStartWith('berth: 12 of 100 blobs, 120.0 MiB of 1000.0 MiB, 10.0 MiB/s, 88 s left')
  })

  test('is one line that is rewritten on a terminal, and ended before the next step', () => {
    const { clock, written, progress } = watch(true)
    progress.onStep('copy')
    progress.onProgress({ blobs: 0, bytes: 0 }, all)
    clock.at = 100
    progress.onProgress({ blobs: 1, bytes: 1 }, all)
    clock.at = 600
    progress.onProgress({ blobs: 2, bytes: 2 * mebi }, all)
    progress.onStep('copy rows')

    expect(written).toEqual([
      'berth: copying blobs; the registry still accepts changes\n',
      '\r\x1b[Kberth: 0 of 100 blobs, 0 B of 1000.0 MiB',
      '\r\x1b[Kberth: 2 of 100 blobs, 2.0 MiB of 1000.0 MiB',
      '\n',
      'berth: copying all rows\n',
    ])
  })

  test('counts rows in the last step', () => {
    const { clock, written, progress } = watch(false)
    progress.onStep('copy rows')
    for (const at of [0, 1_000, 6_000, 7_000]) {
      clock.at = at
      progress.onRows(500)
    }
    progress.end()

    expect(written.slice(1)).toEqual(['berth: 500 rows\n', 'berth: 1500 rows\n', 'berth: 2000 rows\n'])
  })

  test('measures the rate of this run, not of an earlier one', () => {
    const { clock, written, progress } = watch(false)
    progress.onProgress({ blobs: 50, bytes: 500 * mebi }, all)
    clock.at = 10_000
    progress.onProgress({ blobs: 51, bytes: 510 * mebi }, all)

    expect(written.at(-1)).toBe('berth: 51 of 100 blobs, 510.0 MiB of 1000.0 MiB, 1.0 MiB/s, 9 min left\n')
  })
})
