import { digest, reference, type Schema, text, uuid, wholeNumber } from './formats.ts'

interface Header {
  readonly description: string
  readonly schema: Schema
}

/** The headers of answers. The introduction of the document lists those that all answers have. */
export const headers = {
  'Docker-Content-Digest': { description: 'Digest of the content.', schema: digest },
  ETag: { description: 'The digest in quotes: content with this digest never changes.', schema: text },
  Location: {
    description:
      'Path-absolute, and in the mount of the request. With 307: a temporary URL of the blob store that gives access to anyone who knows it.',
    schema: reference,
  },
  Link: { description: '`<...>; rel="next"`: the next page. Absent on the last page.', schema: text },
  Range: { description: '`0-<last received byte>`; also `0-0` while there are no bytes.', schema: text },
  'Docker-Upload-UUID': { description: 'The id of the upload.', schema: uuid },
  'Content-Range': {
    description: '`bytes <first>-<last>/<size>`, or `bytes */<size>` for a refused range.',
    schema: text,
  },
  'Accept-Ranges': { description: '`bytes`', schema: text },
  'Content-Disposition': { description: '`attachment`: a browser should not display the content.', schema: text },
  'Content-Security-Policy': {
    description: 'What a browser may load and run: nothing, or the script of the start page.',
    schema: text,
  },
  'Cache-Control': {
    description: '`no-store`; `public, max-age=...` for the public keys; `no-cache` for the start page.',
    schema: text,
  },
  'Referrer-Policy': { description: '`no-referrer`', schema: text },
  Vary: { description: 'The request headers that the answer depends on.', schema: text },
  'OCI-Subject': { description: 'Digest of the subject, if the manifest has one.', schema: text },
  'OCI-Tag': { description: 'The tags that `tag` parameters have set.', schema: text },
  'OCI-Filters-Applied': { description: '`artifactType`, if the list is filtered by it.', schema: text },
  'WWW-Authenticate': {
    description:
      'Exactly one challenge: `Basic realm="...", charset="UTF-8"`; in the registry, where `auth.challenge` is `bearer`, `Bearer realm="...",service="...",scope="..."`.',
    schema: text,
  },
  Allow: { description: 'The methods that this resource supports in its current state.', schema: { type: 'string' } },
  'Retry-After': { description: 'After how many seconds to try again.', schema: wholeNumber },
} as const satisfies Readonly<Record<string, Header>>

export type HeaderName = keyof typeof headers

/** `sometimes` means that an answer of this status can lack the header. */
export type HeaderUse = Readonly<Partial<Record<HeaderName, 'always' | 'sometimes'>>>
