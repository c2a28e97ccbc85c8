// A request's body that stops half way until it is let go: the server has decided that the request may, and reads.
import { Gate } from './gates.ts'

export interface HeldBody {
  readonly body: ReadableStream<Uint8Array>
  /** Resolves when the server wants the second half. */
  readonly reached: Promise<void>
  letGo(): void
}

export function holdBody(text: string): HeldBody {
  const gate = new Gate()
  const bytes = new TextEncoder().encode(text)
  const half = bytes.length >> 1
  let pulls = 0
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        pulls += 1
        if (pulls === 1) return controller.enqueue(bytes.subarray(0, half))
        await gate.pass()
        controller.enqueue(bytes.subarray(half))
        controller.close()
      },
    },
    // Nothing is taken in advance: who pulls is reading.
    { highWaterMark: 0 },
  )
  return { body, reached: gate.reached, letGo: () => gate.open() }
}
