import type { Digest } from '../oci/digest.ts'
import type { Answer } from './answer.ts'

/** Stored content comes from users. The policy keeps a browser from running it as a page of this server. */
export function contentHeaders(digest: Digest, contentType: string): Record<string, string> {
  return {
    'content-type': contentType,
    'docker-content-digest': digest,
    etag: `"${digest}"`,
    'content-security-policy': "default-src 'none'; sandbox",
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
