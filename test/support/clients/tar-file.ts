// Just enough of the tar format (POSIX ustar) to make real layers and archives.
const blockBytes = 512
const encoder = new TextEncoder()

export interface TarEntry {
  readonly name: string
  readonly content: Uint8Array
}

/** One whole archive in memory. */
export function makeTar(entries: readonly TarEntry[]): Uint8Array {
  const parts = entries.flatMap(({ name, content }) => [
    tarHeader(name, content.length),
    content,
    tarPadding(content.length),
  ])
  return Buffer.concat([...parts, tarEnd])
}

/** What stands before a file's content; for archives that are too large to hold in memory. */
export function tarHeader(name: string, sizeBytes: number): Uint8Array {
  if (encoder.encode(name).length > 100) throw new Error(`'${name}' is too long a name for this tar writer`)
  const header = new Uint8Array(blockBytes)
  const put = (text: string, at: number) => header.set(encoder.encode(text), at)
  put(name, 0)
  put('0000644\0', 100)
  put('0000000\0', 108)
  put('0000000\0', 116)
  put(`${sizeBytes.toString(8).padStart(11, '0')}\0`, 124)
  put('00000000000\0', 136)
  put(' '.repeat(8), 148)
  put('0', 156)
  put('ustar\u000000', 257)
  put('root', 265)
  put('root', 297)
  const sum = header.reduce((total, byte) => total + byte, 0)
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

/** What stands after a file's content, up to the next block. */
export function tarPadding(sizeBytes: number): Uint8Array {
  return new Uint8Array((blockBytes - (sizeBytes % blockBytes)) % blockBytes)
}

/** What stands at the end of an archive. */
export const tarEnd: Uint8Array = new Uint8Array(2 * blockBytes)
