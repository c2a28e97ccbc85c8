// The grammars of the distribution-spec once more, letter by letter and without a regular expression: slow, and written
// from the text of the specification, so that two readings of it can be compared.

const lower = 'abcdefghijklmnopqrstuvwxyz'
const upper = lower.toUpperCase()
const digits = '0123456789'

function consistsOf(text: string, letters: string): boolean {
  return [...text].every((letter) => letters.includes(letter))
}

/** `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*`, of at most 255 letters. */
export function isNameByTheBook(text: string): boolean {
  return text.length <= 255 && text.split('/').every(isPathComponent)
}

function isPathComponent(text: string): boolean {
  if (text === '' || !consistsOf(text, `${lower}${digits}._-`)) return false
  // Split into runs of letters and digits, and what stands between them.
  const runs: string[] = []
  for (const letter of text) {
    const isSeparator = '._-'.includes(letter)
    const last = runs.at(-1)
    if (last !== undefined && '._-'.includes(last.charAt(0)) === isSeparator) runs[runs.length - 1] = last + letter
    else runs.push(letter)
  }
  const separators = runs.filter((_run, at) => at % 2 === 1)
  const isFramed = runs.length % 2 === 1 && consistsOf(runs[0] ?? '', lower + digits)
  return isFramed && separators.every((one) => one === '.' || one === '_' || one === '__' || consistsOf(one, '-'))
}

/** `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}` */
export function isTagByTheBook(text: string): boolean {
  const word = `${lower}${upper}${digits}_`
  return (
    text.length >= 1 && text.length <= 128 && word.includes(text.charAt(0)) && consistsOf(text.slice(1), `${word}.-`)
  )
}

/** `algorithm ":" encoded`; of the algorithms that we know, with the right letters and length. At most 255 letters. */
export function isDigestByTheBook(text: string): boolean {
  const colon = text.indexOf(':')
  if (colon === -1 || text.length > 255) return false
  const [algorithm, encoded] = [text.slice(0, colon), text.slice(colon + 1)]
  if (encoded === '' || !consistsOf(encoded, `${lower}${upper}${digits}=_-`)) return false
  const known = new Map([
    ['sha256', 64],
    ['sha512', 128],
  ]).get(algorithm)
  if (known !== undefined) return encoded.length === known && consistsOf(encoded, `${digits}abcdef`)
  let component = ''
  for (const letter of `${algorithm}+`) {
    if (!'+._-'.includes(letter)) component += letter
    else if (component === '' || !consistsOf(component, lower + digits)) return false
    else component = ''
  }
  return true
}
