import { formatBytes } from '../lib/quantities.ts'

interface Amount {
  readonly blobs: number
  readonly bytes: number
}

type Output = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>

const terminalEveryMs = 500
const otherEveryMs = 5_000

/** Prints the progress of a move: on a terminal one line that is rewritten, elsewhere a line every few seconds. */
export class MoveProgress {
  readonly #output: Output
  readonly #now: () => number
  #start: { readonly at: number; readonly bytes: number } | undefined
  #printedAt = Number.NEGATIVE_INFINITY
  #isLineOpen = false
  /** The newest line, if it has not been printed yet. */
  #pending: string | undefined
  #rows = 0

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output
    this.#now = now
  }

  begin(step: string): void {
    this.end()
    this.#output.write(`berth: ${step}\n`)
  }

  show(done: Amount, all: Amount): void {
    const now = this.#now()
    this.#start ??= { at: now, bytes: done.bytes }
    this.#update(describe(done, all, now - this.#start.at, done.bytes - this.#start.bytes), now)
  }

  /** So many more rows. */
  addRows(rows: number): void {
    this.#rows += rows
    this.#update(`berth: ${this.#rows} rows`, this.#now())
  }

  #update(line: string, now: number): void {
    this.#pending = line
    if (now - this.#printedAt < (this.#output.isTTY ? terminalEveryMs : otherEveryMs)) return
    this.#printedAt = now
    this.#print()
  }

  #print(): void {
    if (this.#pending === undefined) return
    this.#output.write(this.#output.isTTY ? `\r\x1b[K${this.#pending}` : `${this.#pending}\n`)
    this.#isLineOpen = this.#output.isTTY === true
    this.#pending = undefined
  }

  /** Ends the line that is rewritten. The next step measures its own rate. */
  end(): void {
    this.#print()
    if (this.#isLineOpen) this.#output.write('\n')
    this.#isLineOpen = false
    this.#start = undefined
    this.#printedAt = Number.NEGATIVE_INFINITY
    this.#rows = 0
  }
}

function describe(done: Amount, all: Amount, passedMs: number, copied: number): string {
  const share = `${done.blobs} of ${all.blobs} blobs, ${formatBytes(done.bytes)} of ${formatBytes(all.bytes)}`
  if (passedMs < 1_000 || copied <= 0) return `berth: ${share}`
  const perSecond = (copied / passedMs) * 1_000
  const rest = Math.max(0, all.bytes - done.bytes) / perSecond
  return `berth: ${share}, ${formatBytes(Math.round(perSecond))}/s, ${describeRest(rest)} left`
}

function describeRest(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 5_400 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`
}
