// The files of this repository as texts, and texts without the parts that a rule must not look at.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '../basics/test-project.ts'

export interface SourceText {
  /** From the root of the repository, with slashes. */
  readonly path: string
  readonly text: string
}

const isSource = /\.(?:ts|mjs|css|html)$/

/** Every source file below these folders; one that is not there has none. */
export function readSources(...folders: readonly string[]): SourceText[] {
  return folders.flatMap((folder) => listFiles(folder)).map((path) => ({ path, text: readProjectFile(path) ?? '' }))
}

function listFiles(folder: string): string[] {
  const found = readFolder(folder)
  return found.flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : listFiles(path)
    return isSource.test(entry.name) ? [path] : []
  })
}

function readFolder(folder: string) {
  try {
    return readdirSync(join(projectRoot, folder), { withFileTypes: true })
  } catch {
    return []
  }
}

/** A file of the repository, or undefined where there is none. */
export function readProjectFile(path: string): string | undefined {
  try {
    return readFileSync(join(projectRoot, path), 'utf8')
  } catch {
    return undefined
  }
}

export interface Blanking {
  /** Keep the insides of strings and templates. */
  readonly keepStrings: boolean
}

// What a slash means depends on what stands before it: after one of these a regular expression begins.
const beforeExpression = /(?:[(,=:[!&|?{};+\-*%~^<>]|=>|\b(?:return|typeof|case|of|in|do|else|void|await|yield))\s*$/

/**
 * The code with its comments (and if wanted the insides of its strings) turned into spaces: lines and columns stay. Made
 * for the style of this house, not for every program: an expression inside a template counts as a part of the template.
 */
export function blankComments(text: string, { keepStrings }: Blanking): string {
  let code = ''
  let at = 0
  while (at < text.length) {
    const end = endOfPiece(text, at, code)
    const piece = text.slice(at, end)
    const isComment = piece.startsWith('//') || piece.startsWith('/*')
    const isString = piece.length > 1 && /^['"`/]/.test(piece)
    if (isComment) code += spaces(piece)
    else if (isString && !keepStrings) code += (piece[0] ?? '') + spaces(piece.slice(1, -1)) + (piece.at(-1) ?? '')
    else code += piece
    at = end
  }
  return code
}

function spaces(text: string): string {
  return text.replace(/[^\n]/g, ' ')
}

function endOfPiece(text: string, at: number, before: string): number {
  const two = text.slice(at, at + 2)
  if (two === '//') return orEnd(text, text.indexOf('\n', at))
  if (two === '/*') return orEnd(text, text.indexOf('*/', at) + 2)
  const [first = ''] = two
  if (first === "'" || first === '"' || first === '`') return endOfQuoted(text, at, first)
  if (first === '/' && beforeExpression.test(before.slice(-40))) return endOfRegExp(text, at)
  return at + 1
}

function orEnd(text: string, end: number): number {
  return end < 2 ? text.length : end
}

function endOfQuoted(text: string, start: number, quote: string): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (quote === '`' && text.startsWith('${', at)) at = endOfHole(text, at)
    else if (text[at] === quote || (quote !== '`' && text[at] === '\n')) return at + 1
  }
  return text.length
}

/** The closing brace of `${...}` inside a template. */
function endOfHole(text: string, start: number): number {
  let depth = 0
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text[at] ?? ''
    if (code === '{') depth += 1
    else if (code === '}') depth -= 1
    else if (/['"`]/.test(code)) at = endOfQuoted(text, at, code) - 1
    if (depth === 0) return at
  }
  return text.length
}

function endOfRegExp(text: string, start: number): number {
  let isInClass = false
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text[at]
    if (code === '\\') at += 1
    else if (code === '[') isInClass = true
    else if (code === ']') isInClass = false
    else if (code === '\n') return start + 1
    else if (code === '/' && !isInClass) return at + 1
  }
  return start + 1
}
