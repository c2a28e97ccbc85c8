/** One element of an answer: text where it has no children. Attributes (all of them namespaces) are dropped. */
export interface XmlElement {
  readonly name: string
  readonly text: string
  readonly children: readonly XmlElement[]
}

export class XmlFault extends Error {
  override readonly name = 'XmlFault'
}

interface OpenElement {
  readonly name: string
  text: string
  readonly children: XmlElement[]
}

const depthMax = 16
/** What is passed over: declarations and comments; then literal text, a closing and an opening tag, text. */
const tokens = [
  /<\?.*?\?>/,
  /<!--.*?-->/,
  /<!\[CDATA\[(.*?)\]\]>/,
  /<\/([\w:.-]+)\s*>/,
  /<([\w:.-]+)(?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*(\/?)>/,
  /([^<]+)/,
]
const token = new RegExp(tokens.map(({ source }) => source).join('|'), 'sy')
const entity = /&([^&;]{0,32}(?:;|$))?/g
const named: ReadonlyMap<string, string> = new Map([
  ['lt', '<'],
  ['gt', '>'],
  ['amp', '&'],
  ['quot', '"'],
  ['apos', "'"],
])

/**
 * Reads what S3 answers: elements, text, the five entities and character references. No document types, hence no
 * entities of anybody's own making; whoever calls bounds the length.
 */
export function parseXml(source: string): XmlElement {
  const root: OpenElement = { name: '', text: '', children: [] }
  const open: OpenElement[] = [root]
  token.lastIndex = source.startsWith('\ufeff') ? 1 : 0
  while (token.lastIndex < source.length) {
    const match = token.exec(source)
    const parent = open.at(-1)
    if (match === null || parent === undefined) throw new XmlFault('not well-formed')
    const [, literal, closed, opened, slash, text] = match
    if (text !== undefined) addText(parent, decodeEntities(text), open.length)
    else if (literal !== undefined) addText(parent, literal, open.length)
    else if (opened !== undefined) openElement(open, parent, opened, slash === '/')
    else if (closed !== undefined) closeElement(open, parent, closed)
  }
  const [only, second] = root.children
  if (open.length !== 1 || only === undefined || second !== undefined) throw new XmlFault('not one whole document')
  return only
}

function addText(parent: OpenElement, text: string, depth: number): void {
  if (depth > 1) parent.text += text
  else if (text.trim() !== '') throw new XmlFault('text outside of the document')
}

function openElement(open: OpenElement[], parent: OpenElement, name: string, isEmpty: boolean): void {
  const element: OpenElement = { name, text: '', children: [] }
  parent.children.push(element)
  if (isEmpty) return
  if (open.length > depthMax) throw new XmlFault('too deep')
  open.push(element)
}

function closeElement(open: OpenElement[], element: OpenElement, name: string): void {
  if (open.length === 1 || element.name !== name) throw new XmlFault('an element is closed that is not open')
  open.pop()
}

function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(entity, (_, written: string | undefined) => {
    const name = written?.endsWith(';') ? written.slice(0, -1) : ''
    const decoded = named.get(name) ?? decodeReference(name)
    if (decoded === undefined) throw new XmlFault('an unknown entity')
    return decoded
  })
}

function decodeReference(name: string): string | undefined {
  const [, hex, decimal] = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/i.exec(name) ?? []
  const code = hex === undefined ? Number(decimal ?? Number.NaN) : Number.parseInt(hex, 16)
  return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : undefined
}

export function childrenOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child.name === name)
}

/** The text of the first child of that name. */
export function textOf(element: XmlElement, name: string): string | undefined {
  return element.children.find((child) => child.name === name)?.text
}

/** Text on its way into a document of ours. */
export function escapeXml(text: string): string {
  return text.replace(/[<>&"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
