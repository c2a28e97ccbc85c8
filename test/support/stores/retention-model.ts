// Random retention policies and tags, and what a policy keeps, found by looking at all tags at once.
import type { Digest } from '../../../src/oci/digest.ts'
import type { TagState } from '../../../src/ports/tags.ts'
import type { KeepCondition, RetentionPolicy, RetentionRule } from '../../../src/registry/retention-rules.ts'
import { parseRetentionPolicy } from '../../../src/registry/retention-rules.ts'
import { tagged } from './metadata-rows.ts'

export type Draw = (count: number) => number

/** Numbers below `count` that a seed repeats. */
export function drawFrom(seed: number): Draw {
  let state = seed
  return (count) => {
    state = (state * 1103515245 + 12345) % 2147483648
    return Math.floor((state / 2147483648) * count)
  }
}

const day = 86_400_000
const hexes = ['a', 'b'].map((letter) => letter.repeat(64))
const tagPatterns = ['*', 'v*', '{semver}', '*-rc*', 'b?', 'latest', '{main,b1}', 'v1.[0-2].*', 'sha256-*']

/** About a dozen tags of all kinds, pushed and pulled on few different days, so that times are often equal. */
export function drawTags(draw: Draw, now: number): TagState[] {
  const names = [
    ...Array.from(
      { length: draw(14) },
      () => `v${draw(3)}.${draw(3)}.${draw(4)}${draw(4) === 0 ? `-rc${draw(2)}` : ''}`,
    ),
    ...Array.from({ length: draw(5) }, () => `1.${draw(2)}.${draw(4)}`),
    ...Array.from({ length: draw(4) }, () => `b${draw(6)}`),
    ...['latest', 'main', `sha256-${hexes[0]}.sig`, `sha256-${hexes[1]}`].filter(() => draw(2) === 0),
  ]
  const agesMs = () => draw(8) * day + draw(2) * 1000
  return [...new Set(names)].sort().map((name, at) => ({
    tag: tagged(name),
    digest: `sha256:${'0'.repeat(64)}` as Digest,
    manifestId: at + 1,
    pushedAt: now - agesMs(),
    pulledAt: draw(3) === 0 ? undefined : now - agesMs(),
    hasSubject: name.startsWith('sha256-') ? draw(2) === 0 : undefined,
    version: 1,
  }))
}

export function drawPolicy(draw: Draw): { readonly json: object; readonly policy: RetentionPolicy } {
  const some = <T>(value: () => T) => (draw(3) === 0 ? value() : undefined)
  const patterns = () => Array.from({ length: 1 + draw(2) }, () => tagPatterns[draw(tagPatterns.length)])
  const condition = () => ({
    pushedWithin: some(() => `${1 + draw(6)}d`),
    pulledWithin: some(() => `${1 + draw(6)}d`),
    newestPushed: some(() => 1 + draw(4)),
    newestPulled: some(() => 1 + draw(4)),
    newestPatches: some(() => 1 + draw(2)),
    tags: some(patterns),
  })
  const rule = () => ({
    tags: patterns(),
    exceptTags: some(patterns),
    keep: Array.from({ length: draw(3) }, condition).filter((one) =>
      Object.values(one).some((value) => value !== undefined),
    ),
    mayRemoveAllTags: true,
    removesImmutable: draw(2) === 0,
  })
  const rules = Array.from({ length: 1 + draw(3) }, rule)
  const drawn = JSON.parse(JSON.stringify({ rules }))
  for (const one of drawn.rules)
    if (one.keep.length > 0 || !one.tags.includes('*')) one.mayRemoveAllTags = draw(2) === 0
  return { json: drawn, policy: parseRetentionPolicy(drawn) }
}

const expressions = new Map<string, RegExp>()

function glob(pattern: string, tag: string): boolean {
  if (pattern === '{semver}') return /^v?\d+\.\d+\.\d+(-.+)?$/.test(tag)
  const parts: Readonly<Record<string, string>> = { '.': '\\.', '*': '.*', '?': '.', '{': '(', '}': ')', ',': '|' }
  const made = () => new RegExp(`^${pattern.replace(/[.*?{},]/g, (one) => parts[one] ?? '')}$`)
  const expression = expressions.get(pattern) ?? made()
  expressions.set(pattern, expression)
  return expression.test(tag)
}
const matches = (list: readonly string[], tag: string) => list.some((pattern) => glob(pattern, tag))

/** The tags that the policy keeps, in order. */
export function findKept(
  tags: readonly TagState[],
  { rules }: RetentionPolicy,
  now: number,
  isImmutable: (tag: string) => boolean,
): string[] {
  const ruleOf = ({ tag }: TagState) => rules.find((rule) => matches(rule.tags, tag) && !matches(rule.exceptTags, tag))
  const isImage = ({ hasSubject }: TagState) => hasSubject === undefined
  const isKept = (state: TagState) => {
    const rule = ruleOf(state)
    if (rule === undefined || state.hasSubject === true) return true
    if (isImmutable(state.tag) && !rule.removesImmutable) return true
    const covered = tags.filter((other) => isImage(other) && ruleOf(other) === rule)
    return isImage(state) && rule.keep.some((condition) => meets(state, condition, covered, now))
  }
  const kept = tags.filter(isKept)
  const mayRemoveAll = (rule: RetentionRule | undefined) => rule?.mayRemoveAllTags === true
  const final = kept.some(isImage) ? kept : tags.filter((state) => kept.includes(state) || !mayRemoveAll(ruleOf(state)))
  return final.map(({ tag }) => tag)
}

function meets(state: TagState, condition: KeepCondition, covered: readonly TagState[], now: number): boolean {
  const { tags, pushedWithinMs, pulledWithinMs, newestPushed, newestPulled, newestPatches } = condition
  const candidates = covered.filter(
    ({ tag, pushedAt, pulledAt }) =>
      (tags === undefined || matches(tags, tag)) &&
      (pushedWithinMs === undefined || now - pushedAt <= pushedWithinMs) &&
      (pulledWithinMs === undefined || (pulledAt !== undefined && now - pulledAt <= pulledWithinMs)),
  )
  if (!candidates.includes(state)) return false
  const isIn = (count: number | undefined, timeOf: (state: TagState) => number | undefined) => {
    if (count === undefined) return true
    const timed = candidates.filter((one) => timeOf(one) !== undefined)
    const sorted = timed.toSorted((a, b) => (timeOf(b) ?? 0) - (timeOf(a) ?? 0) || (a.tag < b.tag ? 1 : -1))
    return sorted.slice(0, count).includes(state)
  }
  const isNewestPatch = () => {
    const parts = (tag: string) => /^v?(\d+\.\d+)\.(\d+)$/.exec(tag)
    const own = parts(state.tag)
    const sameMinor = candidates.map(({ tag }) => parts(tag)).filter((one) => one?.[1] === own?.[1])
    const patches = [...new Set(sameMinor.map((one) => Number(one?.[2])))].sort((a, b) => b - a)
    return own !== null && patches.slice(0, newestPatches).includes(Number(own[2]))
  }
  return (
    isIn(newestPushed, ({ pushedAt }) => pushedAt) &&
    isIn(newestPulled, ({ pulledAt }) => pulledAt) &&
    (newestPatches === undefined || isNewestPatch())
  )
}
