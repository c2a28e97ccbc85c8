// Random inputs that can be repeated: the seed is printed, and FUZZ_SEED brings it back. Runs are bounded in number.
import fc from 'fast-check'

const given = process.env['FUZZ_SEED']
export const seed = given === undefined ? (Date.now() ^ (process.pid << 15)) | 0 : Number(given)

console.log(`fuzz: seed ${seed} (FUZZ_SEED=${seed} repeats this run)`)

const runs = Number(process.env['FUZZ_RUNS'] ?? 1_000)

/** Checks the property on many values; the first that breaks it is made as small as it can be and shown. */
export function check<T extends [unknown, ...unknown[]]>(
  ...args: [...arbitraries: { [K in keyof T]: fc.Arbitrary<T[K]> }, predicate: (...values: T) => void]
): void {
  fc.assert(fc.property(...(args as unknown as Parameters<typeof fc.property<T>>)), { seed, numRuns: runs })
}

/** Texts made of these pieces: close to what a parser takes, and just as often a little beside it. */
export function piecesOf(pieces: readonly string[], maxLength = 12): fc.Arbitrary<string> {
  return fc.array(fc.constantFrom(...pieces), { maxLength }).map((parts) => parts.join(''))
}

/** Any text at all: of any script, of control characters, of halves of letters. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ maxLength: 300 }),
)

/** The text with one letter taken away, doubled, or replaced by another. */
export function spoiled(good: fc.Arbitrary<string>, letters: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(good, fc.nat(), letters, fc.constantFrom('drop', 'put', 'replace')).map(([text, at, letter, how]) => {
    const index = text.length === 0 ? 0 : at % text.length
    const rest = text.slice(how === 'put' ? index : index + 1)
    return text.slice(0, index) + (how === 'drop' ? '' : letter) + rest
  })
}
