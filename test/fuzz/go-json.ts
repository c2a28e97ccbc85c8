// A reader of JSON that behaves like Go's encoding/json, as far as fields of a struct go: names match without case, a
// later field overwrites an earlier one, and null changes nothing. What most clients of a registry are written with.

/** An object with its keys in order, repeated ones too. */
export interface Members {
  readonly members: readonly (readonly [string, Value])[]
}
export type Value = string | number | boolean | null | readonly Value[] | Members

/** Reads a text that `JSON.parse` accepts. */
export function readJson(text: string): Value {
  const reader = new Reader(text)
  return reader.value()
}

class Reader {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(text: string) {
    this.#tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs) ?? []
  }

  value(): Value {
    const token = this.#next()
    if (token === '[') return this.#list(']', () => this.value())
    if (token === '{') return { members: this.#list('}', () => this.#member()) }
    return JSON.parse(token)
  }

  #member(): readonly [string, Value] {
    const key = String(JSON.parse(this.#next()))
    this.#next()
    return [key, this.value()]
  }

  #list<T>(end: string, item: () => T): T[] {
    const items: T[] = []
    while (this.#tokens[this.#at] !== end) {
      items.push(item())
      if (this.#tokens[this.#at] === ',') this.#at += 1
    }
    this.#at += 1
    return items
  }

  #next(): string {
    this.#at += 1
    return this.#tokens[this.#at - 1] ?? ''
  }
}

/** Go folds the long s and the sign of Kelvin to ASCII, and so must we. */
function fold(name: string): string {
  return [...name].map((letter) => ({ ſ: 's', '\u212a': 'k' })[letter] ?? letter.toLowerCase()).join('')
}

/** The field as a Go struct would hold it; undefined where nothing but null was given. */
export function goField(value: Value, name: string): Value | undefined {
  if (typeof value !== 'object' || value === null || !('members' in value)) return undefined
  return value.members.findLast(([key, one]) => fold(key) === fold(name) && one !== null)?.[1]
}
