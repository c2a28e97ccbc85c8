import { parsePassword } from '../identity/passwords.ts'
import { withoutControls } from './printing.ts'

// Passwords are read from standard input or a terminal. Arguments would appear in the process list and in the history of
// the shell.

/** A source of passwords, such as `process.stdin`. */
export interface SecretInput extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
}

const lineBytesMax = 65_536

/** Reads all of standard input, without the newline at the end. A terminal would show the input, so there it asks instead. */
export async function readPassword(whose: string, input: SecretInput = process.stdin): Promise<string> {
  if (input.isTTY) return askPassword(whose, input)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk))
    bytes += chunk.length
    if (bytes > lineBytesMax) break
  }
  const text = decode(Buffer.concat(chunks))?.replace(/\r?\n$/, '')
  if (text === undefined || /[\r\n]/.test(text))
    throw new Error('the password on standard input must be one line of text')
  return parsePassword(text)
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Asks twice. The typed characters are not shown. */
export async function askPassword(
  whose: string,
  input: SecretInput = process.stdin,
  show: (text: string) => unknown = (text) => process.stderr.write(text),
): Promise<string> {
  const { setRawMode } = input
  if (!input.isTTY || setRawMode === undefined) {
    throw new Error('there is no terminal to ask for a password: use --password-stdin')
  }
  // Raw mode begins before the question is shown, so that no typed character can appear.
  setRawMode.call(input, true)
  try {
    const typed = new TypedLines(input)
    const ask = async (question: string): Promise<string> => {
      show(question)
      try {
        return await typed.next()
      } finally {
        show('\n')
      }
    }
    const password = parsePassword(await ask(`Password for ${withoutControls(whose)}: `))
    if ((await ask('Repeat the password: ')) !== password) throw new Error('the two passwords are different')
    return password
  } finally {
    setRawMode.call(input, false)
  }
}

const backspaces = new Set(['\b', '\u007f'])
const [interrupt, endOfInput, eraseLine, escapeKey] = ['\u0003', '\u0004', '\u0015', '\u001b']

/** Lines from a terminal in raw mode, where every key arrives as it is. */
class TypedLines {
  readonly #chunks: AsyncIterator<Uint8Array | string>
  readonly #decoder = new TextDecoder()
  #characters: string[] = []
  #last = ''

  constructor(input: SecretInput) {
    this.#chunks = input[Symbol.asyncIterator]()
  }

  async next(): Promise<string> {
    const line: string[] = []
    for (;;) {
      const before = this.#last
      const character = await this.#read()
      // A pasted line may end with \r\n.
      if (character === '\n' && before === '\r') continue
      if (character === '\r' || character === '\n') return line.join('')
      if (character === interrupt || (character === endOfInput && line.length === 0)) throw new Error('interrupted')
      if (character === escapeKey) await this.#skipKey()
      else if (backspaces.has(character)) line.pop()
      else if (character === eraseLine) line.length = 0
      else if (!/\p{Cc}/u.test(character)) line.push(character)
    }
  }

  /** Arrow keys send an escape sequence, which is not part of the password. */
  async #skipKey(): Promise<void> {
    const kind = await this.#read()
    if (kind === 'O') await this.#read()
    if (kind === '[') while (!/[@-~]/.test(await this.#read()));
  }

  async #read(): Promise<string> {
    while (this.#characters.length === 0) {
      const { value, done } = await this.#chunks.next()
      if (done) throw new Error('the terminal was closed')
      this.#characters = [...(typeof value === 'string' ? value : this.#decoder.decode(value, { stream: true }))]
    }
    this.#last = this.#characters.shift() ?? ''
    return this.#last
  }
}
