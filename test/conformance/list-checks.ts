// The two lists of a repository: its tags, and what refers to a digest.
import { addressOf, type Reply, type Repository, send } from './client.ts'
import { mediaTypes } from './content.ts'
import type { Referrer } from './data-set.ts'
import {
  expectEqual,
  expectHeader,
  expectListed,
  expectNoHeader,
  expectStatus,
  fail,
  isRecord,
  readJson,
} from './expectations.ts'

export async function listTags(repository: Repository, last?: string): Promise<Reply> {
  return send(repository, 'GET', addressOf(repository, 'tags/list', last === undefined ? {} : { last }))
}

/** A complete list of a fresh repository: these tags in the order of their bytes, and no other. */
export async function expectTags(repository: Repository, tags: readonly string[], last?: string): Promise<void> {
  const reply = await listTags(repository, last)
  expectStatus(reply, 200)
  const list = readJson(reply, 'application/json')
  expectEqual(reply, 'the name', list['name'], repository.name)
  expectEqual(reply, 'the tags', list['tags'], [...tags].sort())
}

/** `last` is left out itself, and so is all before it. */
export async function expectTagsAfterEach(repository: Repository, tags: readonly string[]): Promise<void> {
  const sorted = [...tags].sort()
  for (const [place, last] of sorted.entries()) await expectTags(repository, sorted.slice(place + 1), last)
}

export async function listReferrers(repository: Repository, subject: string, artifactType?: string): Promise<Reply> {
  const query = artifactType === undefined ? {} : { artifactType }
  return send(repository, 'GET', addressOf(repository, `referrers/${subject}`, query))
}

/** All referrers, and with a filter for each of their types only those of the type. */
export async function expectReferrers(
  repository: Repository,
  subject: string,
  expected: readonly Referrer[],
): Promise<void> {
  const all = await listReferrers(repository, subject)
  expectReferrersList(all, expected)
  expectNoHeader(all, 'oci-filters-applied')

  const types = new Set(expected.flatMap(({ artifactType }) => artifactType ?? []))
  for (const type of [...types, 'application/vnd.example.nobody.has']) {
    const some = await listReferrers(repository, subject, type)
    expectListed(some, 'oci-filters-applied', 'artifactType')
    expectReferrersList(
      some,
      expected.filter(({ artifactType }) => artifactType === type),
    )
  }
}

/** An image index of exactly these entries, whatever their order. */
export function expectReferrersList(reply: Reply, expected: readonly Referrer[]): void {
  expectStatus(reply, 200)
  const list = readJson(reply, mediaTypes.index)
  expectHeader(reply, 'content-length', String(reply.body.length))
  expectEqual(reply, 'schemaVersion', list['schemaVersion'], 2)
  expectEqual(reply, 'mediaType', list['mediaType'], mediaTypes.index)
  const entries = list['manifests']
  if (!Array.isArray(entries) || !entries.every(isRecord)) fail(reply, 'manifests must be a list of descriptors')
  expectEqual(reply, 'the referrers', byDigest(entries.map(normal)), byDigest(expected.map((one) => ({ ...one }))))
}

/** No annotations may also be told as an empty map. */
function normal({ annotations, ...entry }: Record<string, unknown>): Record<string, unknown> {
  return isRecord(annotations) && Object.keys(annotations).length > 0 ? { ...entry, annotations } : entry
}

function byDigest(entries: readonly Readonly<Record<string, unknown>>[]): readonly Readonly<Record<string, unknown>>[] {
  return entries.toSorted((one, other) => (String(one['digest']) < String(other['digest']) ? -1 : 1))
}
