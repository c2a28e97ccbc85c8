/** An error of the connection or of the other end's HTTP. Its code is that of the system where there is one. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly code: string

  constructor(code: string, options?: ErrorOptions) {
    super(code, options)
    this.code = code
  }
}

export interface ResponseHead {
  readonly status: number
  readonly headers: Headers
}

/** What ends a body. */
type Framing =
  | { readonly kind: 'length'; left: number }
  | { readonly kind: 'chunks'; readonly decoder: ChunkedDecoder }
  | { readonly kind: 'connection'; isEnded: boolean }

const headBytesMax = 64 * 1024
const noBytes = Buffer.alloc(0)

/** Parses one HTTP/1.1 response to a GET from the bytes of a connection. */
export class ResponseReader {
  #head: ResponseHead | undefined
  #framing: Framing | undefined
  #unparsed: Uint8Array = noBytes
  #isReusable = false

  get head(): ResponseHead | undefined {
    return this.#head
  }

  /** The body has arrived completely. */
  get isComplete(): boolean {
    const framing = this.#framing
    if (framing === undefined) return false
    if (framing.kind === 'length') return framing.left === 0
    return framing.kind === 'chunks' ? framing.decoder.isComplete : framing.isEnded
  }

  /** The connection can carry another request after this response. */
  get isReusable(): boolean {
    return this.isComplete && this.#isReusable
  }

  /** Gives the pieces of the body that these bytes contain. Throws `HttpError` if they are not valid. */
  push(bytes: Uint8Array): readonly Uint8Array[] {
    const body = this.#head === undefined ? this.#pushToHead(bytes) : bytes
    return body.length === 0 ? [] : this.#pushToBody(body)
  }

  /** Gives the bytes behind the head. */
  #pushToHead(bytes: Uint8Array): Uint8Array {
    const all =
      this.#unparsed.length === 0
        ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
        : Buffer.concat([this.#unparsed, bytes])
    const end = all.indexOf('\r\n\r\n')
    if (end > headBytesMax || (end < 0 && all.length > headBytesMax)) throw new HttpError('head-too-long')
    this.#unparsed = end < 0 ? all : noBytes
    if (end < 0) return noBytes
    const { version, ...head } = parseHead(all.toString('latin1', 0, end))
    const rest = all.subarray(end + 4)
    // An interim response: the final one follows.
    if (head.status < 200) return this.#pushToHead(rest)
    this.#head = head
    this.#framing = framingOf(head)
    this.#isReusable = version === '1.1' && !/\bclose\b/i.test(head.headers.get('connection') ?? '')
    return rest
  }

  #pushToBody(bytes: Uint8Array): readonly Uint8Array[] {
    const framing = this.#framing
    if (framing?.kind === 'chunks') return framing.decoder.push(bytes)
    if (framing?.kind === 'length') {
      if (bytes.length > framing.left) throw new HttpError('body-too-long')
      framing.left -= bytes.length
    }
    return [bytes]
  }

  /** The other end has closed the connection. */
  end(): void {
    if (this.#framing?.kind === 'connection') this.#framing.isEnded = true
  }
}

function parseHead(text: string): ResponseHead & { readonly version: string } {
  const [statusLine = '', ...lines] = text.split('\r\n')
  const [, version = '', status] = /^HTTP\/(1\.[01]) (\d{3})(?: |$)/.exec(statusLine) ?? []
  if (status === undefined) throw new HttpError('malformed-head')
  const headers = new Headers()
  for (const line of lines) {
    const [, name, value = ''] = /^([^\s:]+):[ \t]*(.*)$/.exec(line) ?? []
    if (name === undefined) throw new HttpError('malformed-head')
    headers.append(name, value)
  }
  return { version, status: Number(status), headers }
}

function framingOf({ status, headers }: ResponseHead): Framing {
  if (status === 204 || status === 304) return { kind: 'length', left: 0 }
  const encoding = headers.get('transfer-encoding')
  if (encoding !== null) {
    if (encoding.toLowerCase() !== 'chunked') throw new HttpError('unknown-transfer-encoding')
    return { kind: 'chunks', decoder: new ChunkedDecoder() }
  }
  const length = headers.get('content-length')
  if (length === null) return { kind: 'connection', isEnded: false }
  if (!/^\d{1,15}$/.test(length)) throw new HttpError('malformed-head')
  return { kind: 'length', left: Number(length) }
}

const lineBytesMax = 4 * 1024

/** Removes the framing of a chunked body (RFC 9112, section 7.1). Extensions and trailers are skipped. */
class ChunkedDecoder {
  #state: 'size' | 'data' | 'data-end' | 'trailer' | 'complete' = 'size'
  #line = ''
  #left = 0

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  push(bytes: Uint8Array): Uint8Array[] {
    const pieces: Uint8Array[] = []
    let at = 0
    while (at < bytes.length) {
      if (this.#state === 'complete') throw new HttpError('body-too-long')
      if (this.#state === 'data') {
        const piece = bytes.subarray(at, at + this.#left)
        pieces.push(piece)
        at += piece.length
        this.#left -= piece.length
        if (this.#left === 0) this.#state = 'data-end'
        continue
      }
      const end = bytes.indexOf(0x0a, at)
      const until = end < 0 ? bytes.length : end + 1
      this.#line += Buffer.from(bytes.subarray(at, until)).toString('latin1')
      if (this.#line.length > lineBytesMax) throw new HttpError('malformed-chunk')
      if (end >= 0) this.#endLine()
      at = until
    }
    return pieces
  }

  #endLine(): void {
    const line = this.#line.replace(/\r?\n$/, '')
    this.#line = ''
    if (this.#state === 'size') {
      const [, size] = /^([0-9a-f]{1,12})[ \t]*(?:;.*)?$/i.exec(line) ?? []
      if (size === undefined) throw new HttpError('malformed-chunk')
      this.#left = Number.parseInt(size, 16)
      this.#state = this.#left === 0 ? 'trailer' : 'data'
    } else if (this.#state === 'data-end') {
      if (line !== '') throw new HttpError('malformed-chunk')
      this.#state = 'size'
    } else if (line === '') {
      this.#state = 'complete'
    }
  }
}
