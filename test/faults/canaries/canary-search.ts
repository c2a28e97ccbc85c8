// Secrets that must turn up nowhere, and the search for them: whole or in pieces, plain or in any usual disguise.

/** What it is, and its text. */
export interface Canary {
  readonly name: string
  readonly secret: string
}

/** Somewhere that a secret must not get to. */
export interface Place {
  readonly name: string
  readonly text: string
}

/** So much of a secret is too much. */
export const pieceLength = 16
const halfLength = pieceLength / 2

export const disguises: Readonly<Record<string, (secret: string) => readonly string[]>> = {
  plain: (secret) => [secret],
  JSON: (secret) => [JSON.stringify(secret).slice(1, -1)],
  URL: (secret) => [
    encodeURIComponent(secret),
    encodeURI(secret),
    new URLSearchParams({ s: secret }).toString().slice(2),
  ],
  'URL, every letter': (secret) => {
    const bytes = hexOf(secret).replaceAll(/../g, '%$&')
    return [bytes, bytes.toUpperCase()]
  },
  hex: (secret) => [hexOf(secret), hexOf(secret).toUpperCase()],
  base64: (secret) => [0, 1, 2].map((shift) => inBase64(secret, shift, 'base64')),
  base64url: (secret) => [0, 1, 2].map((shift) => inBase64(secret, shift, 'base64url')),
}

function hexOf(secret: string): string {
  return Buffer.from(secret).toString('hex')
}

/** As it looks behind so many other bytes: without the letters that those bytes and what follows have a share in. */
function inBase64(secret: string, shift: number, alphabet: 'base64' | 'base64url'): string {
  const text = Buffer.from('x'.repeat(shift) + secret)
    .toString(alphabet)
    .replace(/=+$/, '')
  return text.slice(shift === 0 ? 0 : 4, -2)
}

/** Everything that is looked for: each piece of each disguise, and what it is a piece of. */
export class CanarySearch {
  readonly #pieces = new Map<string, string>()
  /** Half a piece. Every piece in a text has one at a multiple of its length, so few places need a closer look. */
  readonly #halves = new Set<string>()

  add(...canaries: readonly Canary[]): void {
    for (const { name, secret } of canaries) {
      if (secret.length < pieceLength) throw new Error(`${name} is too short to be told from other texts`)
      for (const [disguise, apply] of Object.entries(disguises)) {
        for (const text of apply(secret)) this.#addPieces(text, `${name} (${disguise})`)
      }
    }
  }

  #addPieces(text: string, label: string): void {
    for (let start = 0; start + pieceLength <= text.length; start += 1) {
      this.#pieces.set(text.slice(start, start + pieceLength), label)
    }
    for (let start = 0; start + halfLength <= text.length; start += 1) {
      this.#halves.add(text.slice(start, start + halfLength))
    }
  }

  get size(): number {
    return this.#pieces.size
  }

  /** What was found, where, and in what surroundings; each secret once a place. */
  find({ name, text }: Place): string[] {
    const found = new Map<string, string>()
    for (let half = 0; half + halfLength <= text.length; half += halfLength) {
      if (!this.#halves.has(text.slice(half, half + halfLength))) continue
      for (let start = Math.max(0, half - halfLength); start <= half; start += 1) {
        const label = this.#pieces.get(text.slice(start, start + pieceLength))
        if (label === undefined || found.has(label)) continue
        found.set(label, JSON.stringify(text.slice(Math.max(0, start - 80), start + pieceLength + 20)))
      }
    }
    return [...found].map(([label, around]) => `${name} holds ${label}: ${around}`)
  }
}
