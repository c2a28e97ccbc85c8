import type { MoveEnd } from '../app/store-move/move-ends.ts'
import type { MoveListener, MoveStep } from '../app/store-move/move-stores.ts'
import { formatBytes } from '../lib/quantities.ts'
import { describeError } from './describe-error.ts'
import { withoutControls } from './printing.ts'

type Amount = Parameters<MoveListener['onProgress']>[0]
type Output = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>

const terminalEveryMs = 500
const otherEveryMs = 5_000

const stepTexts: Readonly<Partial<Record<MoveStep, string>>> = {
  copy: 'copying blobs; the registry still accepts changes',
  start: 'the registry accepts no changes from now on; pulls go on',
  'copy rest': 'copying the blobs that were pushed meanwhile',
  'copy rows': 'copying all rows',
}

/** Prints the progress of a move: on a terminal one line that is rewritten, elsewhere a line every few seconds. */
export class MoveProgress implements MoveListener {
  readonly #output: Output
  readonly #now: () => number
  #start: { readonly at: number; readonly bytes: number } | undefined
  #printedAt = Number.NEGATIVE_INFINITY
  #isLineOpen = false
  /** The newest line, if it has not been printed yet. */
  #pending: string | undefined
  #rows = 0
  #hint: string | undefined
  #lastFault: string | undefined

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output
    this.#now = now
  }

  /** What the operator can do after an error. */
  get hint(): string | undefined {
    return this.#hint
  }

  onPlaces(source: MoveEnd, target: MoveEnd, keepsBlobStore: boolean): void {
    this.#begin(`from ${source.metadataPlace} and ${source.blobsPlace}`)
    const stay = keepsBlobStore ? ': the blobs stay where they are' : ''
    this.#begin(`to ${target.metadataPlace} and ${target.blobsPlace}${stay}`)
  }

  onStep(step: MoveStep): void {
    const text = stepTexts[step]
    if (text !== undefined) this.#begin(text)
    if (step === 'copy') this.#hint = 'the registry still accepts changes: run this again to continue'
  }

  onStarted(): void {
    this.#hint = 'the registry accepts no changes: run this again to continue, or with --abort to go back'
  }

  onProgress(done: Amount, all: Amount): void {
    const now = this.#now()
    this.#start ??= { at: now, bytes: done.bytes }
    this.#update(describe(done, all, now - this.#start.at, done.bytes - this.#start.bytes), now)
  }

  onRows(rows: number): void {
    this.#rows += rows
    this.#update(`berth: ${this.#rows} rows`, this.#now())
  }

  onRetry(error: unknown): void {
    // All blobs that are being copied report the same fault.
    const fault = withoutControls(describeError(error))
    if (this.#lastFault !== fault) this.#begin(`trying again: ${fault}`)
    this.#lastFault = fault
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

  #begin(text: string): void {
    this.end()
    this.#output.write(`berth: ${text}\n`)
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
