// HTTP by hand, for requests that no client would send: repeated header lines, odd paths, bodies that end early.
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  /** Names in lower case; of repeated lines the last. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** The header lines in their order. */
  readonly lines: readonly (readonly [string, string])[]
}

export interface RawExchange {
  readonly answers: readonly RawAnswer[]
  readonly statuses: readonly number[]
  /** All that came, as it came. */
  readonly text: string
}

/** What the next piece waits for: so many bytes of answers, or nothing. */
export type Piece = string | Uint8Array | { readonly waitFor: string }

const patienceMs = 10_000

/**
 * Sends the pieces one after the other and reads until the server ends the connection. The last request of the pieces
 * must ask for that (`Connection: close`), or be one after which the server does it by itself.
 */
export function sendRaw(port: number, ...pieces: readonly Piece[]): Promise<RawExchange> {
  return new Promise((resolve, reject) => {
    let received = ''
    let wake = (): void => undefined
    const socket = connect(port, '127.0.0.1', () => void feed())
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection stayed open; this came: ${JSON.stringify(received.slice(0, 2_000))}`))
    }, patienceMs)
    const feed = async (): Promise<void> => {
      for (const piece of pieces) {
        if (typeof piece === 'string') socket.write(piece, 'latin1')
        else if (piece instanceof Uint8Array) socket.write(piece)
        else {
          while (!received.includes(piece.waitFor) && !socket.destroyed) {
            await new Promise<void>((go) => {
              wake = go
            })
          }
        }
      }
    }
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      wake()
    })
    // A server that cuts us while we still send is no failure of the test: what it answered before counts.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      wake()
      const answers = parseAnswers(received)
      resolve({ answers, statuses: answers.map(({ status }) => status), text: received })
    })
  })
}

/** The head of a request or of an answer, up to the end of the text if it is not whole. */
export function parseHead(text: string) {
  const end = text.indexOf('\r\n\r\n')
  const [firstLine = '', ...rest] = text.slice(0, end === -1 ? undefined : end).split('\r\n')
  const lines = rest.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  return { firstLine, headers: new Map(lines), lines, bodyStart: end === -1 ? text.length : end + 4 }
}

function parseAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = text
  while (rest !== '') {
    const answer = parseAnswer(rest)
    const hasNoBody = answer.status < 200 || answer.status === 204 || answer.status === 304
    const length = hasNoBody ? 0 : Number(answer.headers.get('content-length') ?? 0)
    answers.push({ ...answer, body: answer.body.slice(0, length) })
    rest = answer.body.slice(length)
  }
  return answers
}

/** Sends one request; all that comes behind the head of the answer is its body. */
export async function askRaw(port: number, requestLine: string, headers: readonly string[] = []): Promise<RawAnswer> {
  const request = [requestLine, 'Host: 127.0.0.1', ...headers, 'Connection: close', '', ''].join('\r\n')
  return parseAnswer((await sendRaw(port, request)).text)
}

/** The answer whose head begins the text. What follows the head is its body. */
export function parseAnswer(text: string): RawAnswer {
  const { firstLine, headers, lines, bodyStart } = parseHead(text)
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(`${firstLine} `)?.[1] ?? Number.NaN)
  return { status, headers, lines, body: text.slice(bodyStart) }
}
