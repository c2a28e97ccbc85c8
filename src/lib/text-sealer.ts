import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto'

const tagBytes = 16

/**
 * Encrypts short texts, so that nobody can read or change them. The same text always gives the same result, which therefore
 * can be an id. It is the construction of RFC 5297 (synthetic initialisation vector) with HMAC-SHA256 and AES-256-CTR.
 */
export class TextSealer {
  readonly #tagKey: Buffer
  readonly #cipherKey: Buffer

  constructor(secret: string) {
    this.#tagKey = createHmac('sha256', secret).update('tag').digest()
    this.#cipherKey = createHmac('sha256', secret).update('cipher').digest()
  }

  /** Letters, digits, `-` and `_`. */
  seal(text: string): string {
    const tag = this.#tagOf(text)
    const cipher = createCipheriv('aes-256-ctr', this.#cipherKey, tag)
    return Buffer.concat([tag, cipher.update(text, 'utf8'), cipher.final()]).toString('base64url')
  }

  /** Undefined if `seal` did not return this text. */
  open(sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length < tagBytes) return undefined
    const tag = bytes.subarray(0, tagBytes)
    const cipher = createDecipheriv('aes-256-ctr', this.#cipherKey, tag)
    const text = Buffer.concat([cipher.update(bytes.subarray(tagBytes)), cipher.final()]).toString('utf8')
    return timingSafeEqual(tag, this.#tagOf(text)) ? text : undefined
  }

  #tagOf(text: string): Buffer {
    return createHmac('sha256', this.#tagKey).update(text).digest().subarray(0, tagBytes)
  }
}
