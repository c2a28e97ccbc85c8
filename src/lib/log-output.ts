const flushAtBytes = 16_384
const flushAfterMs = 100
const closingMs = 1_000
const closingPollMs = 10

/**
 * Writes lines to standard output without blocking. Lines are buffered, so that one system call writes many. If the
 * reader is slow or the disk is full, up to `bufferBytes` of text wait, and further lines are dropped. As soon as the
 * output accepts text again, the number of dropped lines is written in their place.
 */
export class LogOutput {
  readonly #bufferBytes: number
  readonly #describeLoss: (lines: number) => string
  #sink: Bun.FileSink | undefined
  #lines: string[] = []
  #length = 0
  #lostLines = 0
  #hasFailed = false
  #isWriting = false
  #timer: Timer | undefined

  constructor(bufferBytes: number, describeLoss: (lines: number) => string) {
    this.#bufferBytes = bufferBytes
    this.#describeLoss = describeLoss
  }

  write(line: string): void {
    if (this.#lostLines > 0 || this.#length + line.length > this.#bufferBytes) {
      this.#lostLines += 1
    } else {
      this.#lines.push(line)
      this.#length += line.length
    }
    if (this.#isWriting) return
    if (this.#length >= flushAtBytes) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), flushAfterMs)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isWriting || (this.#lines.length === 0 && this.#lostLines === 0)) return
    const lines = this.#lines.length
    const lost = this.#lostLines
    // A failed write may have ended within a line.
    const start = this.#hasFailed ? '\n' : ''
    const text = start + this.#lines.join('') + (lost > 0 ? this.#describeLoss(lost) : '')
    this.#lines = []
    this.#length = 0
    this.#lostLines = 0
    this.#send(text, lines + lost)
  }

  /** Waits for the reader only for a limited time, so that the process can end. */
  async close(): Promise<void> {
    const deadline = performance.now() + closingMs
    this.flush()
    while (this.#isWriting && performance.now() < deadline) await Bun.sleep(closingPollMs)
  }

  #send(text: string, lines: number): void {
    try {
      // Bun writes as much as the pipe accepts now and the rest later. Neither blocks.
      this.#sink ??= Bun.stdout.writer()
      const steps = [this.#sink.write(text), this.#sink.flush()]
      if (steps.some((step) => step instanceof Promise)) {
        this.#isWriting = true
        Promise.all(steps).then(
          () => this.#onSent(),
          () => this.#onFailed(lines),
        )
      } else this.#hasFailed = false
    } catch {
      this.#onFailed(lines)
    }
  }

  #onSent(): void {
    this.#isWriting = false
    this.#hasFailed = false
    this.flush()
  }

  /** A failure can only be reported later, by the next write that succeeds. */
  #onFailed(lines: number): void {
    this.#isWriting = false
    this.#hasFailed = true
    this.#lostLines += lines
    this.#sink = undefined
  }
}
