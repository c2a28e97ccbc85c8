const patienceMs = 20_000
const pollMs = 20

/** Waits until `look` gives a value. After 20 s it fails the test with `what` as the reason. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + patienceMs
  while (Date.now() < deadline) {
    const seen = await look()
    if (seen !== undefined && seen !== false) return seen
    await Bun.sleep(pollMs)
  }
  throw new Error(`waited in vain until ${what}`)
}
