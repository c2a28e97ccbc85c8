// The files of this repository as texts, and texts without the parts that a rule must not look at.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '../basics/test-project.ts'

export interface SourceText {
  /** From the root of the repository, with slashes. */
  readonly path: string
  readonly text: string
}

/** Every source file below these folders. */
export function readSources(...folders: readonly string[]): SourceText[] {
  return folders.flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|mjs|css|html)$/.test(name) && statSync(join(projectRoot, folder, name)).isFile())
      .map((name) => ({ path: `${folder}/${name}`, text: readProjectFile(`${folder}/${name}`) ?? '' })),
  )
}

/** A file of the repository, or undefined if it is missing. */
export function readProjectFile(path: string): string | undefined {
  try {
    return readFileSync(join(projectRoot, path), 'utf8')
  } catch {
    return undefined
  }
}

/** Comments, strings, templates and regular expressions. An expression inside a template is a part of the template. */
const pieces = [
  /\/\/.*|\/\*[\s\S]*?\*\//,
  /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/,
  /`(?:\\[\s\S]|\$\{(?:[^`{}]|'[^']*'|`[^`]*`|\{[^{}]*\})*\}|[^\\`])*`/,
  // A slash begins a regular expression only where no value stands before it.
  /(?<=(?:^|[(,=:[!&|?{};+*%~^<>]|\breturn)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//,
]
const anyPiece = new RegExp(pieces.map(({ source }) => source).join('|'), 'g')

export type Kept = 'code' | 'strings' | 'code and strings'

/** The text with all other parts turned into spaces: lines and columns stay. */
export function maskSource(text: string, kept: Kept): string {
  let masked = ''
  let at = 0
  const add = (part: string, isKept: boolean) => {
    masked += isKept ? part : part.replace(/[^\n]/g, ' ')
    at += part.length
  }
  for (const { index, 0: piece } of text.matchAll(anyPiece)) {
    add(text.slice(at, index), kept !== 'strings')
    add(piece, kept !== 'code' && !/^\/[/*]/.test(piece))
  }
  add(text.slice(at), kept !== 'strings')
  return masked
}
