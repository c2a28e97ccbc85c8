const flushAtBytes = 16_384
/** A pipe takes so many bytes of one write together, or none (PIPE_BUF on Linux). A file and a socket take more. */
const atomicBytes = 4_096
const flushAfterMs = 100
const closingMs = 1_000
const closingPollMs = 10

/**
 * Writes lines to standard output without blocking. Lines are buffered, so that one system call writes many. If the
 * reader is slow or the disk is full, up to `bufferBytes` of text wait, and further lines are dropped. As soon as the
 * output accepts text again, the number of dropped lines is written in their place.
 *
 * If several processes write to the same output, each write has whole lines and at most `atomicBytes`, so that lines are not
 * mixed. Only a longer line can be mixed with others, and only if the output is a pipe that is full.
 */
export class LogOutput {
  readonly #bufferBytes: number
  readonly #isShared: boolean
  readonly #describeLoss: (lines: number) => string
  #sink: Bun.FileSink | undefined
  #lines: string[] = []
  #length = 0
  #lostLines = 0
  #hasFailed = false
  #isWriting = false
  #timer: Timer | undefined

  constructor(bufferBytes: number, isShared: boolean, describeLoss: (lines: number) => string) {
    this.#bufferBytes = bufferBytes
    this.#isShared = isShared
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
    const batches = this.#isShared ? toBatches(this.#lines) : [toBatch(this.#lines)]
    if (this.#lostLines > 0) batches.push({ text: this.#describeLoss(this.#lostLines), lines: this.#lostLines })
    this.#lines = []
    this.#length = 0
    this.#lostLines = 0
    void this.#send(batches)
  }

  /** Waits for the reader only for a limited time, so that the process can end. */
  async close(): Promise<void> {
    const deadline = performance.now() + closingMs
    this.flush()
    while (this.#isWriting && performance.now() < deadline) await Bun.sleep(closingPollMs)
  }

  /** Writes synchronously as long as the output accepts the text at once. */
  async #send(batches: readonly Batch[]): Promise<void> {
    this.#isWriting = true
    let unsent = batches
    try {
      for (const { text } of batches) {
        // A failed write may have ended within a line.
        const writing = this.#write(this.#hasFailed ? `\n${text}` : text)
        if (writing !== undefined) await writing
        this.#hasFailed = false
        unsent = unsent.slice(1)
      }
    } catch {
      // A failure can only be reported later, by the next write that succeeds.
      this.#hasFailed = true
      this.#lostLines += unsent.reduce((sum, { lines }) => sum + lines, 0)
      this.#sink = undefined
    }
    this.#isWriting = false
    if (!this.#hasFailed) this.flush()
  }

  /** Bun writes as much as the pipe accepts now and the rest later. Neither blocks. */
  #write(text: string): Promise<unknown> | undefined {
    this.#sink ??= Bun.stdout.writer()
    const steps = [this.#sink.write(text), this.#sink.flush()]
    return steps.some((step) => step instanceof Promise) ? Promise.all(steps) : undefined
  }
}

interface Batch {
  readonly text: string
  readonly lines: number
}

function toBatch(lines: readonly string[]): Batch {
  return { text: lines.join(''), lines: lines.length }
}

/** Batches of at most `atomicBytes`. A longer line has a batch of its own. */
function toBatches(lines: readonly string[]): Batch[] {
  const batches: Batch[] = []
  let start = 0
  let bytes = 0
  for (const [index, line] of lines.entries()) {
    const lineBytes = Buffer.byteLength(line)
    if (bytes + lineBytes > atomicBytes && index > start) {
      batches.push(toBatch(lines.slice(start, index)))
      start = index
      bytes = 0
    }
    bytes += lineBytes
  }
  if (start < lines.length) batches.push(toBatch(lines.slice(start)))
  return batches
}
