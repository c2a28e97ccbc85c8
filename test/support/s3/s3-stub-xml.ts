// What the S3 stub says in XML, and the one document that it is told in XML.

/** An answer of no: S3's own words for it, and the status that belongs to them. */
export class S3Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

export type XmlContent = string | number | boolean | XmlElements
export interface XmlElements {
  readonly [name: string]: XmlContent | readonly XmlContent[]
}

export function writeXml(root: string, elements: XmlElements): string {
  const opening = root === 'Error' ? root : `${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${opening}>${writeElements(elements)}</${root}>`
}

function writeElements(elements: XmlElements): string {
  return Object.entries(elements)
    .flatMap(([name, content]) =>
      (isList(content) ? content : [content]).map((one) => `<${name}>${writeContent(one)}</${name}>`),
    )
    .join('')
}

function isList(content: XmlContent | readonly XmlContent[]): content is readonly XmlContent[] {
  return Array.isArray(content)
}

const entities: Readonly<Record<string, string>> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' }

function writeContent(content: XmlContent): string {
  if (typeof content === 'object') return writeElements(content)
  return String(content).replace(/[&<>"']/g, (character) => `&${entities[character]};`)
}

export interface PartToJoin {
  readonly number: number
  /** Without its quotes. */
  readonly etag: string
  readonly crc32: string | undefined
}

const badDocument = () =>
  new S3Refusal(400, 'MalformedXML', 'The XML you provided was not well-formed or did not validate against our schema')

/** The body of CompleteMultipartUpload, taken strictly: nothing but parts, each with its number and its ETag. */
export function parsePartsToJoin(text: string): PartToJoin[] {
  const inner = /^\s*(?:<\?xml[^>]*\?>)?\s*<CompleteMultipartUpload(?:\s[^>]*)?>(.*)<\/CompleteMultipartUpload>\s*$/s
  const body = inner.exec(text)?.[1]
  if (body === undefined) throw badDocument()
  const parts: PartToJoin[] = []
  const rest = body.replace(/<Part>(.*?)<\/Part>/gs, (_, part: string) => {
    parts.push(parsePart(part))
    return ''
  })
  if (rest.trim() !== '' || parts.length === 0) throw badDocument()
  return parts
}

function parsePart(text: string): PartToJoin {
  const fields = new Map<string, string>()
  const rest = text.replace(/<(\w+)>([^<]*)<\/\1>/g, (_, name: string, value: string) => {
    fields.set(name, value.replaceAll('&quot;', '"').replaceAll('&#34;', '"').trim())
    return ''
  })
  const number = fields.get('PartNumber') ?? ''
  const etag = /^(?:"([^"<>&]+)"|([^"<>&]+))$/.exec(fields.get('ETag') ?? '')
  if (rest.trim() !== '' || !/^\d+$/.test(number) || etag === null) throw badDocument()
  return { number: Number(number), etag: etag[1] ?? etag[2] ?? '', crc32: fields.get('ChecksumCRC32') }
}
