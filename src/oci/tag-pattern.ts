import { parseSemanticVersion } from './semantic-version.ts'

/**
 * A pattern for tags. `*` stands for any text, `?` for one character, `[0-9a]` for one of these characters, and `{a,b*}` for
 * one of these patterns. `{semver}`, alone, matches semantic versions. Only `parseTagPattern` creates it.
 */
export type TagPattern = string & { readonly __brand: 'TagPattern' }

export type TagTest = (tag: string) => boolean

/** A pattern is at most as long as a tag. So a match takes at most 128 steps for each character of the tag. */
export const tagPatternLengthMax = 128

const versions = '{semver}'

// One piece: a wildcard, characters to choose from, patterns to choose from, or a character of a tag. There is only one way to
// read a text: a hyphen between two characters always makes a range.
const choice = /\[-?(?:[A-Za-z0-9._](?:-[A-Za-z0-9])?)+\]/
const range = /.(?:-[A-Za-z0-9])?/g
const simplePiece = new RegExp(`[*?]|${choice.source}|[A-Za-z0-9._-]`)
const alternatives = new RegExp(`\\{(?:${simplePiece.source})*(?:,(?:${simplePiece.source})*)+\\}`)
const pieces = new RegExp(`${alternatives.source}|${simplePiece.source}`, 'gy')

/** Undefined if the text is no pattern. */
export function parseTagPattern(text: string): TagPattern | undefined {
  if (text.length === 0 || text.length > tagPatternLengthMax) return undefined
  if (text === versions) return text as TagPattern
  if (listPieces(text).join('') !== text) return undefined
  return isOrdered(text) ? (text as TagPattern) : undefined
}

/** Whether every range of characters has its smaller end first. Otherwise no character would match. */
function isOrdered(text: string): boolean {
  const choices = text.match(new RegExp(choice.source, 'g')) ?? []
  return choices.flatMap(listRanges).every((one) => (one[0] ?? '') <= (one.at(-1) ?? ''))
}

function listRanges(piece: string): readonly string[] {
  return piece.slice(1, -1).match(range) ?? []
}

function listPieces(text: string): readonly string[] {
  return text.match(pieces) ?? []
}

/** A state of the matcher: the characters that it accepts, and where it goes. Without characters it goes on at once. */
interface State {
  readonly accepts: ((character: string) => boolean) | undefined
  readonly next: readonly number[]
}

/**
 * Follows all ways through the pattern at once, so there is no backtracking: each character of the tag visits each state at
 * most once.
 */
export function compileTagPattern(pattern: TagPattern): TagTest {
  if (pattern === versions) return (tag) => parseSemanticVersion(tag) !== undefined
  if (!/[*?[{]/.test(pattern)) return (tag) => tag === pattern
  const states: State[] = [{ accepts: undefined, next: [] }]
  const end = 0
  const start = addPieces(states, listPieces(pattern), end)
  return (tag) => {
    let reached = reach(states, [start])
    for (const character of tag) {
      const accepting = [...reached].filter((at) => states[at]?.accepts?.(character))
      if (accepting.length === 0) return false
      reached = reach(
        states,
        accepting.flatMap((at) => states[at]?.next ?? []),
      )
    }
    return reached.has(end)
  }
}

/** The given states, and those that follow them without a character. */
function reach(states: readonly State[], from: readonly number[]): ReadonlySet<number> {
  const reached = new Set<number>()
  const open = [...from]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (reached.has(at)) continue
    reached.add(at)
    const state = states[at]
    if (state !== undefined && state.accepts === undefined) open.push(...state.next)
  }
  return reached
}

/** Adds the states of the pieces. They lead to the state `after`. Returns the first of them. */
function addPieces(states: State[], list: readonly string[], after: number): number {
  return list.reduceRight((next, piece) => addPiece(states, piece, next), after)
}

function addPiece(states: State[], piece: string, next: number): number {
  const add = (state: State): number => states.push(state) - 1
  if (piece === '*') {
    const any = states.length
    add({ accepts: () => true, next: [any + 1] })
    return add({ accepts: undefined, next: [any, next] })
  }
  if (piece.startsWith('{')) {
    const options = piece.slice(1, -1).split(',')
    return add({ accepts: undefined, next: options.map((option) => addPieces(states, listPieces(option), next)) })
  }
  return add({ accepts: testOf(piece), next: [next] })
}

function testOf(piece: string): (character: string) => boolean {
  if (piece === '?') return () => true
  if (!piece.startsWith('[')) return (character) => character === piece
  const ranges = listRanges(piece)
  return (character) => ranges.some((one) => (one[0] ?? '') <= character && character <= (one.at(-1) ?? ''))
}
