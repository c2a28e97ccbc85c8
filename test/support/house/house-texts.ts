// The rules about what stands in a file. Each takes texts and gives faults, so that planted texts can prove it.
import { isAtHome, roomOf } from './house-imports.ts'
import { clocklessLayers, functionLinesMax, globalHomes, linesMax } from './house-table.ts'
import { blankComments, type SourceText } from './source-text.ts'

function bareCode({ text }: SourceText): string {
  return blankComments(text, { keepStrings: false })
}

function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

/** Every match of `pattern` in `code`, as `path:line what`. */
function report(path: string, code: string, pattern: RegExp, what: string): string[] {
  return [...code.matchAll(pattern)].map(
    ({ index, 0: found }) => `${path}:${lineAt(code, index)} ${what}: ${found.trim()}`,
  )
}

export function findLongFiles(sources: readonly SourceText[]): string[] {
  return sources.flatMap(({ path, text }) => {
    const lines = text.replace(/\n$/, '').split('\n').length
    return lines > linesMax ? [`${path} has ${lines} lines, ${linesMax} at most`] : []
  })
}

// A body opens behind the parameters, the type of the result, or the arrow.
const bodyOpening = /(?:\)|=>|\)\s*:\s*[\w$][^;={}]*)\s*\{/g

/** Rough: Biome has the exact rule. Every block counts, so a long `if` is a long function too. */
export function findLongFunctions(sources: readonly SourceText[]): string[] {
  return sources.flatMap((source) => {
    const code = bareCode(source)
    return [...code.matchAll(bodyOpening)].flatMap(({ index, 0: opening }) => {
      const start = index + opening.length - 1
      const body = code.slice(start, endOfBlock(code, start))
      const lines = body.split('\n').filter((line) => line.trim() !== '').length - 2
      return lines > functionLinesMax ? [`${source.path}:${lineAt(code, index)} a function of ${lines} lines`] : []
    })
  })
}

function endOfBlock(code: string, start: number): number {
  let depth = 0
  for (let at = start; at < code.length; at += 1) {
    if (code[at] === '{') depth += 1
    else if (code[at] === '}') depth -= 1
    if (depth === 0) return at + 1
  }
  return code.length
}

const vagueName = /(?:^|-)(?:utils?|helpers?|common|misc|manager)$|^(?:index|types)$|-service$/

/** Names that say nothing of what is inside. */
export function findVagueNames(sources: readonly SourceText[]): string[] {
  return sources.flatMap(({ path }) => {
    const vague = path.split('/').find((part) => vagueName.test(part.replace(/\.[\w.]+$/, '')))
    return vague === undefined || path === 'ui/index.html' ? [] : [`${path} has a name that says nothing: ${vague}`]
  })
}

export function findDefaultExports(sources: readonly SourceText[]): string[] {
  return sources.flatMap((source) =>
    report(source.path, bareCode(source), /\bexport\s+default\b|\bas\s+default\b/g, 'default export'),
  )
}

/** Engines, the environment, and other doors to the world outside the files where they live. */
export function findStrayGlobals(sources: readonly SourceText[]): string[] {
  return sources.flatMap((source) => {
    const code = bareCode(source)
    return Object.entries(globalHomes).flatMap(([name, homes]) => {
      if (isAtHome(source.path, homes)) return []
      const pattern = new RegExp(`(?<![\\w$.])${name.replaceAll('.', '\\s*\\??\\.\\s*')}\\b`, 'g')
      return report(source.path, code, pattern, `lives in ${homes.join(', ') || 'no file of ours'} alone`)
    })
  })
}

export function findStrayClocks(sources: readonly SourceText[]): string[] {
  const pattern = /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|\bMath\.random\b|\bset(?:Timeout|Interval)\b/g
  return sources
    .filter(({ path }) => clocklessLayers.some((layer) => layer === roomOf(path)))
    .flatMap((source) => report(source.path, bareCode(source), pattern, 'a clock of its own'))
}

// Put together, so that this file does not hold the words that it looks for.
const promises = new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`, 'g')

export function findPromises(sources: readonly SourceText[]): string[] {
  return sources.flatMap(({ path, text }) => report(path, text, promises, 'a promise to do it later'))
}

/** The files that may leave a test out: each says so aloud, with a reason, and fails where leaving out is forbidden. */
const loudSkips: readonly string[] = ['test/clients/client-suite.ts', 'test/support/basics/needs.ts']

export function findQuietSkips(sources: readonly SourceText[]): string[] {
  const pattern = /\b(?:test|it|describe)\s*\.\s*(?:skip|skipIf|only|todo|todoIf|if)\s*\(/g
  return sources
    .filter(({ path }) => !loudSkips.includes(path))
    .flatMap((source) => report(source.path, bareCode(source), pattern, 'a test is left out'))
}

const messageDecision =
  /\.message\s*(?:[!=]==|\??\.(?:includes|startsWith|endsWith|indexOf|match|search)\s*\()|(?:[!=]==|\.(?:test|exec|has|includes)\s*\(|\bswitch\s*\()\s*[\w$.?]+\.message\b/g

/** Finds direct uses only: a message that was first copied into a variable is not recognised. */
export function findMessageDecisions(sources: readonly SourceText[]): string[] {
  return sources.flatMap((source) =>
    report(source.path, bareCode(source), messageDecision, 'compares or searches the message of an error'),
  )
}

const sql =
  /\b(?:select\s[^'"`]*?\sfrom\s|insert\s+(?:or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|(?:create|drop|alter)\s+table\s|pragma\s+\w)/gi

export function findStraySql(sources: readonly SourceText[]): string[] {
  return sources
    .filter(({ path }) => path.startsWith('src/') && !path.startsWith('src/adapters/metadata-sql/'))
    .flatMap((source) => report(source.path, stringsOf(source), sql, 'SQL outside adapters/metadata-sql'))
}

/** What stands between quotes, and nothing else; lines stay where they are. */
function stringsOf(source: SourceText): string {
  const kept = blankComments(source.text, { keepStrings: true })
  const bare = bareCode(source)
  return [...kept].map((char, at) => (char === '\n' || char !== bare[at] ? char : ' ')).join('')
}

const transpiler = new Bun.Transpiler({ loader: 'ts' })

/** Ports contain only interfaces: they have no code that runs, and import only types. */
export function findRunningPorts(sources: readonly SourceText[]): string[] {
  const ports = sources.filter(({ path }) => roomOf(path) === 'ports')
  const running = ports.filter(({ text }) => transpiler.transformSync(text).trim() !== '')
  return [
    ...running.map(({ path }) => `${path} holds code that runs`),
    ...ports.flatMap((source) => report(source.path, bareCode(source), /\bimport\s+(?!type\b)/g, 'not a type import')),
  ]
}
