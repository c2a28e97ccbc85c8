// What the S3 stub says in XML, and the one document that it is told in XML.

/** An error of S3. */
export class S3Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message = code, headers: Readonly<Record<string, string>> = {}) {
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
    .flatMap(([name, content]) => [content].flat().map((one) => `<${name}>${writeContent(one)}</${name}>`))
    .join('')
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

/** The body of CompleteMultipartUpload. It may contain only parts, each with its number and its ETag. */
export function parsePartsToJoin(text: string): PartToJoin[] {
  const form =
    /^\s*(?:<\?xml[^>]*\?>)?\s*<CompleteMultipartUpload(?: [^>]*)?>((?:<Part>.*?<\/Part>)+)<\/Complete\w+>\s*$/s
  const [, parts = ''] = form.exec(text) ?? []
  if (parts === '') throw new S3Refusal(400, 'MalformedXML')
  return parts.split('</Part>').slice(0, -1).map(parsePart)
}

function parsePart(text: string): PartToJoin {
  const fields = new Map([...text.matchAll(/<(\w+)>([^<]*)<\/\1>/g)].map(([, name = '', value = '']) => [name, value]))
  const number = fields.get('PartNumber') ?? ''
  const etag = /^"?([^"<>&]+)"?$/.exec((fields.get('ETag') ?? '').replaceAll(/&quot;|&#34;/g, '"').trim())?.[1]
  if (!/^\d+$/.test(number) || etag === undefined) throw new S3Refusal(400, 'MalformedXML')
  return { number: Number(number), etag, crc32: fields.get('ChecksumCRC32') }
}
