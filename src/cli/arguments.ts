import { InvalidArgumentError } from 'commander'
import { allRights, isRight } from '../identity/rights.ts'
import { parseDuration, parseTime } from '../lib/quantities.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../oci/repository-pattern.ts'

type Right = (typeof allRights)[number]

// Parsers of command-line arguments. Commander adds the name of the argument to the message.

/** For repeatable options. */
export function gather(given: string, before: readonly string[] = []): readonly string[] {
  return [...before, given]
}

export function gatherRights(given: string, before: readonly Right[] = []): readonly Right[] {
  if (!isRight(given)) throw new InvalidArgumentError(`It must be one of ${allRights.join(', ')}.`)
  return [...new Set([...before, given])]
}

const patternsMax = 64

export function gatherPatterns(given: string, before: readonly RepositoryPattern[] = []): readonly RepositoryPattern[] {
  const pattern = parseRepositoryPattern(given)
  if (pattern === undefined)
    throw new InvalidArgumentError('It must be the name of a repository, in which * stands for any text.')
  if (before.length >= patternsMax) throw new InvalidArgumentError(`At most ${patternsMax} can be given.`)
  return [...before, pattern]
}

// The latest time that a Date can represent.
const timeMax = 8_640_000_000_000_000

/** A duration from now -> the time in milliseconds since 1970. */
export function parseExpiry(given: string): number {
  const time = Date.now() + (parseDuration(given) ?? Number.NaN)
  if (time <= timeMax) return time
  throw new InvalidArgumentError('It must be a duration such as 12h or 90d.')
}

export function parseEnd(given: string): number {
  const time = parseTime(given)
  if (time !== undefined) return time
  throw new InvalidArgumentError('It must be a time such as 2030-01-31T12:00:00Z.')
}

/** A time, or how long ago it was. */
export function parsePast(given: string): number {
  const time = parseTime(given) ?? Date.now() - (parseDuration(given) ?? Number.NaN)
  if (!Number.isNaN(time)) return time
  throw new InvalidArgumentError('It must be a time such as 2030-01-31T12:00:00Z, or a duration such as 24h.')
}

/** A duration, in milliseconds. It may be zero. */
export function parseAge(given: string): number {
  const value = parseDuration(given)
  if (value !== undefined) return value
  throw new InvalidArgumentError('It must be a duration such as 0s, 30m or 24h.')
}

/** The name of an account. Remote identity services may use almost any text. */
export function parseAccount(given: string): string {
  const isName = given.length > 0 && given.length <= 255 && given.isWellFormed() && !/\p{Cc}/u.test(given)
  if (isName && given.trim() === given) return given
  throw new InvalidArgumentError('It must be the name of an account: 1 to 255 characters on one line.')
}
