// Each rule takes texts and returns violations, so that a planted violation can prove it.
import { posix } from 'node:path'
import {
  builtinHomes,
  clocklessLayers,
  globalHomes,
  importTable,
  kitOrder,
  type Layer,
  linesMax,
  packageHomes,
  versionFile,
} from './house-table.ts'
import { type Kept, maskSource, type SourceText } from './source-text.ts'

export type Find = (sources: readonly SourceText[]) => string[]

interface Import {
  readonly from: string
  /** A path of this repository, or a package or module as it is written. */
  readonly to: string
  readonly isRelative: boolean
}

const imported =
  /\b(?:import|export)\s+(?:type\s+)?(?:[\w$*{][^'";()]*?\bfrom\s*)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g

function importsOf({ path, text }: SourceText): Import[] {
  return [...maskSource(text, 'code and strings').matchAll(imported)].map(([, named, loaded]) => {
    const to = named ?? loaded ?? ''
    const isRelative = to.startsWith('.')
    return { from: path, to: isRelative ? posix.join(posix.dirname(path), to) : to, isRelative }
  })
}

const allImports = (sources: readonly SourceText[]) => sources.flatMap(importsOf)

function layerOf(path: string): Layer | undefined {
  const [, layer = ''] = /^src\/(\w+)(?:\/|\.ts$)/.exec(path) ?? []
  return Object.hasOwn(importTable, layer) ? (layer as Layer) : undefined
}

function mayImport(from: string, to: string): boolean {
  if (to === 'package.json') return from === versionFile
  const [own, other] = [layerOf(from), layerOf(to)]
  if (own === undefined || other === undefined) return false
  // `src/adapters/blobs-s3/...`: adapters do not import each other.
  if (own === other) return own !== 'adapters' || from.split('/')[2] === to.split('/')[2]
  return (importTable[own] as readonly Layer[]).includes(other)
}

export const findForbiddenImports: Find = (sources) =>
  allImports(sources)
    .filter(({ from, to, isRelative }) => isRelative && !mayImport(from, to))
    .map(({ from, to }) => `${from} may not import ${to}`)

export const findFilesOutsideLayers: Find = (sources) =>
  sources.filter(({ path }) => layerOf(path) === undefined).map(({ path }) => `${path} is in no layer`)

/** Files of test/support that are in no kit, and imports of a test or of a kit that stands later in the order. */
export const findForbiddenKitImports: Find = (sources) => {
  const kitOf = (path: string) => (path.startsWith('test/support/') ? kitOrder.indexOf(path.split('/')[2] ?? '') : -1)
  const files = sources.filter(({ path }) => path.startsWith('test/support/'))
  return [
    ...files.filter(({ path }) => kitOf(path) === -1).map(({ path }) => `${path} is in no kit`),
    ...allImports(files)
      .filter(({ from, to }) => to.startsWith('test/') && (kitOf(to) === -1 || kitOf(to) > kitOf(from)))
      .map(({ from, to }) => `${from} may not import ${to}`),
  ]
}

export const findCycles: Find = (sources) => {
  const next = new Map(sources.map((source) => [source.path, importsOf(source).map(({ to }) => to)]))
  const cycles = new Set<string>()
  const done = new Set<string>()
  const walk = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start !== -1) cycles.add(`cycle: ${[...trail.slice(start), path].join(' -> ')}`)
    if (start !== -1 || done.has(path)) return
    for (const to of next.get(path) ?? []) if (next.has(to)) walk(to, [...trail, path])
    done.add(path)
  }
  for (const path of next.keys()) walk(path, [])
  return [...cycles]
}

/** `@scope/name/inner` -> `@scope/name`. */
const packageOf = (name: string) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name

const isAtHome = (path: string, homes: readonly string[]) =>
  homes.some((home) => (home.endsWith('/') ? path.startsWith(home) : path === home))

/** Packages and built-in modules outside the files that may import them. */
export const findMisplacedModules: Find = (sources) =>
  allImports(sources)
    .filter(({ isRelative }) => !isRelative)
    .flatMap(({ from, to }) => {
      const homes = /^bun$|^(?:bun|node):/.test(to) ? builtinHomes[to] : packageHomes[packageOf(to)]
      if (homes === undefined) return [`${from} imports ${to}, which is not in the house table`]
      return isAtHome(from, homes) ? [] : [`${from} imports ${to}, which only ${homes.join(', ')} may import`]
    })

export function findUnusedPackages(sources: readonly SourceText[], packages: readonly string[]): string[] {
  const used = new Set(allImports(sources).map(({ to }) => packageOf(to)))
  return packages.filter((name) => !used.has(name)).map((name) => `nothing imports ${name}`)
}

export const findLongFiles: Find = (sources) =>
  sources.flatMap(({ path, text }) => {
    const lines = text.replace(/\n$/, '').split('\n').length
    return lines > linesMax ? [`${path} has ${lines} lines, ${linesMax} at most`] : []
  })

const vagueName = /(?:^|-)(?:utils?|helpers?|common|misc|manager)$|^(?:index|types)$|-service$/

export const findVagueNames: Find = (sources) =>
  sources.flatMap(({ path }) => {
    const vague = path.split('/').find((part) => vagueName.test(part.replace(/\.[\w.]+$/, '')))
    return vague === undefined ? [] : [`${path} has a name that says nothing: ${vague}`]
  })

interface PatternRule {
  readonly pattern: RegExp
  readonly what: string
  readonly kept?: Kept | 'everything'
  readonly applies?: (path: string) => boolean
}

/** A rule that forbids a pattern. */
function forbid({ pattern, what, kept = 'code', applies = () => true }: PatternRule): Find {
  return (sources) =>
    sources
      .filter(({ path }) => applies(path))
      .flatMap(({ path, text }) =>
        [...(kept === 'everything' ? text : maskSource(text, kept)).matchAll(pattern)].map(
          ({ index, 0: found }) => `${path}:${text.slice(0, index).split('\n').length} ${what}: ${found.trim()}`,
        ),
      )
}

const globalRules = Object.entries(globalHomes).map(([name, homes]) =>
  forbid({
    pattern: new RegExp(`(?<![\\w$.])${name.replaceAll('.', '\\s*\\??\\.\\s*')}\\b`, 'g'),
    what: `only ${homes.join(', ') || 'no file'} may use`,
    applies: (path) => !isAtHome(path, homes),
  }),
)

/** Engines, the environment and processes outside the files that may use them. */
export const findMisplacedGlobals: Find = (sources) => globalRules.flatMap((find) => find(sources))

export const findClocks = forbid({
  pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|\bMath\.random\b|\bset(?:Timeout|Interval)\b/g,
  what: 'a clock or random numbers without the port',
  applies: (path) => clocklessLayers.some((layer) => layer === layerOf(path)),
})

export const findPromisesOfWork = forbid({
  // Put together, so that this file does not contain the words.
  pattern: new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`, 'g'),
  what: 'a promise to do it later',
  kept: 'everything',
})

/** These files may skip a test: they print the reason, and fail in CI. */
const loudSkips: readonly string[] = ['test/clients/client-suite.ts', 'test/support/basics/needs.ts']

export const findQuietSkips = forbid({
  pattern: /\b(?:test|it|describe)\s*\.\s*(?:skip|skipIf|only|todo|todoIf|if)\s*\(/g,
  what: 'a test is skipped',
  applies: (path) => !loudSkips.includes(path),
})

/** Finds direct uses only: a message that was first copied into a variable is not recognised. */
export const findMessageDecisions = forbid({
  pattern:
    /\.message\s*(?:[!=]==|\??\.(?:includes|startsWith|endsWith|indexOf|match|search)\s*\()|(?:[!=]==|\.(?:test|exec|has|includes)\s*\(|\bswitch\s*\()\s*[\w$.?]+\.message\b/g,
  what: 'compares or searches the message of an error',
})

export const findMisplacedSql = forbid({
  pattern:
    /\b(?:select\s[^'"`]*?\sfrom\s|insert\s+(?:or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|(?:create|drop|alter)\s+table\s|pragma\s+\w)/gi,
  what: 'SQL outside adapters/metadata-sql',
  kept: 'strings',
  applies: (path) => !path.startsWith('src/adapters/metadata-sql/'),
})

const transpiler = new Bun.Transpiler({ loader: 'ts' })
const isPort = (path: string) => layerOf(path) === 'ports'
const findValueImports = forbid({ pattern: /\bimport\s+(?!type\b)/g, what: 'not a type import', applies: isPort })

/** Ports contain only interfaces: they have no code that runs, and import only types. */
export const findRunningPorts: Find = (sources) => [
  ...sources
    .filter(({ path, text }) => isPort(path) && transpiler.transformSync(text).trim() !== '')
    .map(({ path }) => `${path} has code that runs`),
  ...findValueImports(sources),
]
