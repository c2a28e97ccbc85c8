const gatherBytes = 16_384
const gatherMs = 100
const closingMs = 1_000
const closingPollMs = 10

/**
 * Lines on their way to standard output: gathered, so that one system call serves many, and never waited for. While the
 * reader takes nothing, or the disk is full, up to `bufferBytes` of text wait; lines beyond that are dropped. The number of
 * dropped lines is written in their place as soon as the output takes text again.
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
    if (this.#length >= gatherBytes) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), gatherMs)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isWriting || (this.#lines.length === 0 && this.#lostLines === 0)) return
    const lines = this.#lines.length
    const lost = this.#lostLines
    // A write that failed may have ended within a line.
    const start = this.#hasFailed ? '\n' : ''
    const text = start + this.#lines.join('') + (lost > 0 ? this.#describeLoss(lost) : '')
    this.#lines = []
    this.#length = 0
    this.#lostLines = 0
    this.#send(text, lines + lost)
  }

  /** Gives up when the reader takes nothing for a while: it must not keep the process from ending. */
  async close(): Promise<void> {
    const deadline = performance.now() + closingMs
    this.flush()
    while (this.#isWriting && performance.now() < deadline) await Bun.sleep(closingPollMs)
  }

  #send(text: string, lines: number): void {
    try {
      // Bun writes what the pipe takes at once, and the rest when the pipe is ready: neither blocks.
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

  /** Nobody can be told, except later and here: the next line tries again. */
  #onFailed(lines: number): void {
    this.#isWriting = false
    this.#hasFailed = true
    this.#lostLines += lines
    this.#sink = undefined
  }
}
