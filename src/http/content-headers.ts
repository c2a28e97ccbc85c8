import type { Digest } from '../oci/digest.ts'
import { type Answer, prepareHeaders } from './answer.ts'

const preparedMax = 2_000

/** The headers of stored content, prepared once for each digest. When there are too many, all are forgotten. */
export class ContentHeaders {
  readonly #prepared = new Map<Digest, { readonly contentType: string; readonly headers: Headers }>()
  readonly #more: Readonly<Record<string, string>>

  /** `more`: what else all answers of this kind contain. */
  constructor(more: Readonly<Record<string, string>> = {}) {
    this.#more = more
  }

  of(digest: Digest, contentType: string): Headers {
    const known = this.#prepared.get(digest)
    if (known?.contentType === contentType) return known.headers
    const headers = prepareHeaders({
      'content-type': contentType,
      'docker-content-digest': digest,
      etag: `"${digest}"`,
      // Stored content comes from users. The policy keeps a browser from running it as a page of this server.
      'content-security-policy': "default-src 'none'; sandbox",
      ...this.#more,
    })
    if (this.#prepared.size >= preparedMax) this.#prepared.clear()
    this.#prepared.set(digest, { contentType, headers })
    return headers
  }
}

/** RFC 9110, 13.1.2: weak comparison, a list, or any. */
export function isUnchanged(headers: Headers, digest: Digest): boolean {
  const wanted = headers.get('if-none-match')
  if (wanted === null) return false
  return wanted.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === `"${digest}"`)
}

export function notModified(digest: Digest): Answer {
  return { status: 304, headers: { etag: `"${digest}"`, 'docker-content-digest': digest } }
}
