import type { EventType } from '../ports/events.ts'

/** The text of each type ends with the members of `data`, if events of the type have any. */
export const eventTypes: Readonly<Record<EventType, string>> = {
  'manifest.pushed': 'A manifest was stored that the repository did not have. `data`: `mediaType`, `sizeBytes`.',
  'manifest.deleted': 'A manifest was removed, by a caller or by a policy.',
  'tag.created': 'A tag was created.',
  'tag.moved': 'A tag points to another manifest than before, which is `previousDigest`.',
  'tag.deleted': 'A tag was removed. `previousDigest` is the manifest that it had.',
}
