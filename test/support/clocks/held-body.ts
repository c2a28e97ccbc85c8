// A request's body that stops half way until the test releases it. By then the server has checked rights and reads the body.
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
    // No chunk is taken in advance: a pull means that the server reads.
    { highWaterMark: 0 },
  )
  return { body, reached: gate.reached, letGo: () => gate.open() }
}
