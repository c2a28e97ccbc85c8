// Bytes on a socket, as they are: for requests that no HTTP client would send, and for counting the answers to them.
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  /** Names in lower case; of repeated lines the last. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
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

function parseAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = text
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    const head = end === -1 ? rest : rest.slice(0, end)
    const [statusLine = '', ...lines] = head.split('\r\n')
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
      }),
    )
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(`${statusLine} `)?.[1] ?? Number.NaN)
    const hasNoBody = status < 200 || status === 204 || status === 304
    const length = hasNoBody ? 0 : Number(headers.get('content-length') ?? 0)
    const bodyStart = end === -1 ? rest.length : end + 4
    answers.push({ status, headers, body: rest.slice(bodyStart, bodyStart + length) })
    rest = rest.slice(bodyStart + length)
  }
  return answers
}
