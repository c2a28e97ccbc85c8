// What a machine may lack. A test that cannot run says so loudly, and in CI it fails.
import { describe, test } from 'bun:test'

export interface Need {
  readonly isMet: boolean
  /** The reason, as text for the log. */
  readonly reason: string
}

/** As `test`, when the need is met. Otherwise a loud skip, or a failure where CI is set. */
export function testNeeding(need: Need, name: string, body: () => Promise<unknown>, timeoutMs?: number): void {
  if (need.isMet) {
    test(name, body, timeoutMs)
    return
  }
  if (process.env['CI'] !== undefined) {
    test(name, () => {
      throw new Error(`CI must be able to run this: ${need.reason}`)
    })
    return
  }
  console.error(`\n!!! SKIPPED: ${name}\n!!! because ${need.reason}\n`)
  test.skip(name, body)
}

/** As `describe`, when the need is met. Otherwise one loud skip, or a failure where CI is set. */
export function describeNeeding(need: Need, name: string, body: () => void): void {
  if (need.isMet) describe(name, body)
  else testNeeding(need, name, async () => undefined)
}
