import { digest } from './formats.ts'
import { reference, type Schema, text, uuid, wholeNumber } from './schemas.ts'

interface Header {
  readonly description: string
  readonly schema: Schema
}

/** Every header that says something about its answer, once. Those that all answers have stand in the introduction. */
export const headers = {
  'Docker-Content-Digest': { description: 'Digest of the content.', schema: digest },
  ETag: { description: 'The digest in quotes: content with this digest never changes.', schema: text },
  Location: {
    description:
      'Path-absolute, and in the mount that the request came in on. With 307: an address of the blob store, good for a while and for anybody who knows it.',
    schema: reference,
  },
  Link: { description: '`<...>; rel="next"`: the page behind this one. Absent on the last.', schema: text },
  Range: { description: '`0-<last byte received>`; `0-0` while there is nothing, too.', schema: text },
  'Docker-Upload-UUID': { description: 'The upload.', schema: uuid },
  'Content-Range': {
    description: '`bytes <first>-<last>/<size>`, or `bytes */<size>` for a refused range.',
    schema: text,
  },
  'Accept-Ranges': { description: '`bytes`', schema: text },
  'Content-Disposition': { description: '`attachment`: a browser shall not show it.', schema: text },
  'Content-Security-Policy': {
    description: 'What a browser may load and run: nothing, or the own script of the start page.',
    schema: text,
  },
  'Cache-Control': {
    description: '`no-store`; `public, max-age=...` for the public keys; `no-cache` for the start page.',
    schema: text,
  },
  'Referrer-Policy': { description: '`no-referrer`', schema: text },
  Vary: { description: 'The request headers that decide about the form of the answer.', schema: text },
  'OCI-Subject': { description: 'Digest of the subject, if the manifest names one.', schema: text },
  'OCI-Tag': { description: 'The tags that were set by `tag` parameters.', schema: text },
  'OCI-Filters-Applied': { description: '`artifactType`, if the list was filtered by it.', schema: text },
  'WWW-Authenticate': {
    description:
      'Exactly one challenge: `Basic realm="...", charset="UTF-8"`; in the registry, where `auth.challenge` is `bearer`, `Bearer realm="...",service="...",scope="..."`.',
    schema: text,
  },
  Allow: { description: 'The methods that this resource takes as it is now.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds after which to try again.', schema: wholeNumber },
} as const satisfies Readonly<Record<string, Header>>

export type HeaderName = keyof typeof headers

/** `sometimes` is for headers that an answer of this status may lack. */
export type HeaderUse = Readonly<Partial<Record<HeaderName, 'always' | 'sometimes'>>>
