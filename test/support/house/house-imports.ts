// The rules about arrows between files. Each takes texts and gives faults, so that planted texts can prove it.
import { posix } from 'node:path'
import { builtinHomes, importTable, kitOrder, type Layer, packageHomes, versionFile } from './house-table.ts'
import { blankComments, type SourceText } from './source-text.ts'

export interface Import {
  readonly from: string
  /** A path of this repository, or a package or module as it is written. */
  readonly to: string
  readonly isRelative: boolean
  readonly isTypeOnly: boolean
}

const declaration = /\b(?:import|export)\s+(type\s+)?(?:[\w$*{][^'";()]*?\bfrom\s*)?'([^']+)'/g
const dynamic = /\bimport\(\s*'([^']+)'\s*\)/g

export function importsOf({ path, text }: SourceText): Import[] {
  const code = blankComments(text, { keepStrings: true })
  const found = [...code.matchAll(declaration)].map(([, type, to = '']) => ({ to, isTypeOnly: type !== undefined }))
  const late = [...code.matchAll(dynamic)].map(([, to = '']) => ({ to, isTypeOnly: false }))
  return [...found, ...late].map(({ to, isTypeOnly }) => {
    const isRelative = to.startsWith('.')
    return { from: path, to: isRelative ? posix.join(posix.dirname(path), to) : to, isRelative, isTypeOnly }
  })
}

function isRoom(name: string): name is Layer {
  return Object.hasOwn(importTable, name)
}

export function roomOf(path: string): Layer | undefined {
  const [top, layer = ''] = path.split('/')
  if (top !== 'src') return undefined
  const name = layer === 'main.ts' ? 'main' : layer
  return isRoom(name) ? name : undefined
}

/** `src/adapters/blobs-s3/...` -> `blobs-s3`. */
function adapterOf(path: string): string {
  return path.split('/')[2] ?? ''
}

function maySee(from: string, to: string): boolean {
  if (to === 'package.json') return from === versionFile
  const fromRoom = roomOf(from)
  const toRoom = roomOf(to)
  if (fromRoom === undefined || toRoom === undefined) return false
  if (fromRoom === toRoom) return fromRoom !== 'adapters' || adapterOf(from) === adapterOf(to)
  return (importTable[fromRoom] as readonly Layer[]).includes(toRoom)
}

export function findForbiddenImports(sources: readonly SourceText[]): string[] {
  return sources
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap(importsOf)
    .filter(({ from, to, isRelative }) => isRelative && !maySee(from, to))
    .map(({ from, to }) => `${from} may not import ${to}`)
}

/** The face talks to the public interface and to nothing else. */
export function findUiImports(sources: readonly SourceText[]): string[] {
  return sources
    .filter(({ path }) => path.startsWith('ui/'))
    .flatMap(importsOf)
    .filter(({ to, isRelative }) => isRelative && !to.startsWith('ui/'))
    .map(({ from, to }) => `${from} may not import ${to}`)
}

/** Files of test/support that are in no kit, and imports of a test or of a kit that stands later in the order. */
export function findForbiddenKitImports(sources: readonly SourceText[]): string[] {
  const kitOf = (path: string) => (path.startsWith('test/support/') ? kitOrder.indexOf(path.split('/')[2] ?? '') : -1)
  const kits = sources.filter(({ path }) => path.startsWith('test/support/'))
  const outside = kits.filter(({ path }) => kitOf(path) === -1).map(({ path }) => `${path} is in no kit`)
  const forbidden = kits
    .flatMap(importsOf)
    .filter(({ from, to }) => to.startsWith('test/') && (kitOf(to) === -1 || kitOf(to) > kitOf(from)))
    .map(({ from, to }) => `${from} may not import ${to}`)
  return [...outside, ...forbidden]
}

export function findImportsOfMissingFiles(sources: readonly SourceText[]): string[] {
  const known = new Set(sources.map(({ path }) => path))
  return sources
    .flatMap(importsOf)
    .filter(({ to, isRelative }) => isRelative && to.endsWith('.ts') && !known.has(to))
    .map(({ from, to }) => `${from} imports ${to}, which is not there`)
}

/** Files outside src/LAYER/ that are in no layer at all. */
export function findHomelessFiles(sources: readonly SourceText[]): string[] {
  return sources
    .filter(({ path }) => path.startsWith('src/') && roomOf(path) === undefined)
    .map(({ path }) => `${path} is in no layer of the house`)
}

export function findCircles(sources: readonly SourceText[]): string[] {
  const next = new Map(sources.map((source) => [source.path, importsOf(source).flatMap(({ to }) => to)]))
  const circles = new Set<string>()
  const done = new Set<string>()
  const walk = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start !== -1) circles.add(drawCircle(trail.slice(start)))
    if (start !== -1 || done.has(path)) return
    for (const to of next.get(path) ?? []) if (next.has(to)) walk(to, [...trail, path])
    done.add(path)
  }
  for (const path of next.keys()) walk(path, [])
  return [...circles]
}

/** The same circle is drawn the same way wherever it was entered. */
function drawCircle(members: readonly string[]): string {
  const first = members.indexOf([...members].sort()[0] ?? '')
  const turned = [...members.slice(first), ...members.slice(0, first)]
  return `circle: ${[...turned, turned[0]].join(' -> ')}`
}

/** `@scope/name/inner` -> `@scope/name`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

export function isAtHome(path: string, homes: readonly string[]): boolean {
  return homes.some((home) => (home.endsWith('/') ? path.startsWith(home) : path === home))
}

function isBuiltin(specifier: string): boolean {
  return specifier === 'bun' || /^(?:bun|node):/.test(specifier)
}

/** Packages and builtin modules outside the files where they live. */
export function findStrayModules(sources: readonly SourceText[]): string[] {
  return sources
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap(importsOf)
    .filter(({ isRelative }) => !isRelative)
    .flatMap(({ from, to }) => {
      const homes = isBuiltin(to) ? builtinHomes[to] : packageHomes[packageOf(to)]
      if (homes === undefined) return [`${from} imports ${to}, which has no home in the house table`]
      return isAtHome(from, homes) ? [] : [`${from} imports ${to}, which lives in ${homes.join(', ')} alone`]
    })
}

/** What `package.json` brings along for running, and nothing imports. */
export function findUnusedPackages(sources: readonly SourceText[], dependencies: readonly string[]): string[] {
  const used = new Set(sources.flatMap(importsOf).map(({ to }) => packageOf(to)))
  return dependencies
    .filter((name) => !used.has(name))
    .map((name) => `package.json needs ${name}, which nothing imports`)
}

/** The rows `| layer | ... | may import |` of the table in a Markdown page, as in `importTable`. */
export function parseImportTable(markdown: string): Map<string, string[]> {
  const rows = markdown.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  const isHead = ([first = '', ...rest]: readonly string[]) =>
    /^folder$/i.test(first) && rest.some((cell) => /^may import$/i.test(cell))
  const start = rows.findIndex(isHead)
  const column = rows[start]?.findIndex((cell) => /^may import$/i.test(cell)) ?? 0
  const end = rows.findIndex((cells, index) => index > start && cells.length === 0)
  const body = start === -1 ? [] : rows.slice(start + 2, end === -1 ? undefined : end)
  return new Map(
    body.map((cells) => {
      const layer = /(?:src\/)?([a-z]+)/.exec(cells[0] ?? '')?.[1] ?? ''
      return [layer, (cells[column]?.match(/[a-z]+/g) ?? []).filter(isRoom)]
    }),
  )
}
