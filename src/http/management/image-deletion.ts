import { formatTime } from '../../lib/quantities.ts'
import { parseDigest } from '../../oci/digest.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { parseTag } from '../../oci/names.ts'
import { parseTagPattern } from '../../oci/tag-pattern.ts'
import { isAllowed } from '../../registry/access.ts'
import { type DeletionReport, deleteImage, deleteRepository, deleteTags } from '../../registry/image-deletion.ts'
import type { TagSelection } from '../../registry/tag-selection.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { repositoriesPath } from '../mounts.ts'
import { parseAfter } from '../paging.ts'
import { parseFlag, queryInvalid } from '../query-values.ts'
import { json, type Route } from '../route.ts'

const answers = { 200: { description: 'The consequences.', content: json('DeletionResponse') } }
const undelete = 'Deleted manifests can be undeleted for `garbage.undelete`.'

export const imageDeletionRoutes: readonly Route[] = [
  {
    operationId: 'deleteTag',
    method: 'DELETE',
    pattern: `${repositoriesPath}/{name}/-/tags/{tag}`,
    access: 'repository',
    right: 'delete',
    handle: deleteOneTag,
    summary: 'Delete a tag, or tell what that would do',
    description: `Its manifest stays, unless \`images=true\`. ${undelete}`,
    parameters: ['plainTag', 'dryRun', 'images', 'companions'],
    answers,
    refusals: ['name-unknown', 'tag-invalid', 'manifest-unknown', 'tag-immutable', 'query-invalid'],
  },
  {
    operationId: 'deleteTags',
    method: 'DELETE',
    pattern: `${repositoriesPath}/{name}/-/tags`,
    access: 'repository',
    right: 'delete',
    handle: deleteManyTags,
    summary: 'Delete the tags that match a pattern, or that are named, or tell what that would do',
    description: `Needs \`match\` or \`tag\`. Their manifests stay, unless \`images=true\`. One request deletes at most 1,000 tags and 500 manifests; while \`hasMore\` is true, repeat it, with \`last\` if the answer has one. ${undelete}`,
    parameters: ['match', 'namedTags', 'dryRun', 'images', 'companions', 'last'],
    answers,
    refusals: ['name-unknown', 'tag-invalid', 'too-many-tags', 'tag-immutable', 'query-invalid'],
  },
  {
    operationId: 'deleteImage',
    method: 'DELETE',
    pattern: `${repositoriesPath}/{name}/-/manifests/{digest}`,
    access: 'repository',
    right: 'delete',
    handle: deleteOneImage,
    summary: 'Delete an image with all its tags, or tell what that would do',
    description: `One request deletes at most 500 manifests; while \`hasMore\` is true, repeat it. ${undelete}`,
    parameters: ['manifestDigest', 'dryRun', 'companions'],
    answers,
    refusals: [
      'name-unknown',
      'digest-invalid',
      'digest-unsupported',
      'manifest-unknown',
      'manifest-in-use',
      'tag-immutable',
      'query-invalid',
    ],
  },
]

/** The pattern matches what others could match too, so this route comes after them. */
export const repositoryDeletionRoutes: readonly Route[] = [
  {
    operationId: 'deleteRepository',
    method: 'DELETE',
    pattern: `${repositoriesPath}/{name}`,
    access: 'repository',
    right: 'delete',
    handle: deleteWholeRepository,
    summary: 'Delete all images and tags of a repository, or tell what that would do',
    description: `One request deletes at most 500 manifests; while \`hasMore\` is true, repeat it. ${undelete}`,
    parameters: ['dryRun'],
    answers,
    refusals: ['name-unknown', 'tag-immutable', 'query-invalid'],
  },
]

const namedTagsMax = 100

async function deleteOneTag(exchange: RepositoryExchange): Promise<Answer> {
  const { app, principal, repositoryKey, path } = exchange
  const tag = parseTag(path['tag'] ?? '')
  const report = await deleteTags(app, repositoryKey, { tags: [tag] }, parseOptions(exchange), principal)
  if (report.immutable.length > 0) throw new RegistryRefusal('tag-immutable', { tag })
  if (report.tags.length === 0) throw new RegistryRefusal('manifest-unknown', { tag })
  return showReport(repositoryKey.repository, report)
}

async function deleteManyTags(exchange: RepositoryExchange): Promise<Answer> {
  const { app, principal, repositoryKey, target } = exchange
  const selection = parseSelection(target.query)
  const report = await deleteTags(app, repositoryKey, selection, parseOptions(exchange), principal)
  return showReport(repositoryKey.repository, report)
}

async function deleteOneImage(exchange: RepositoryExchange): Promise<Answer> {
  const { app, principal, repositoryKey, path } = exchange
  const digest = parseDigest(path['digest'] ?? '')
  const report = await deleteImage(app, repositoryKey, digest, parseOptions(exchange), principal)
  return showReport(repositoryKey.repository, report)
}

async function deleteWholeRepository(exchange: RepositoryExchange): Promise<Answer> {
  const { app, principal, repositoryKey } = exchange
  const report = await deleteRepository(app, repositoryKey, parseOptions(exchange), principal)
  return showReport(repositoryKey.repository, report)
}

function parseOptions({ principal, repositoryKey, target: { query } }: RepositoryExchange) {
  return {
    isDryRun: parseFlag(query, 'dryRun'),
    withCompanions: parseFlag(query, 'companions'),
    withImages: parseFlag(query, 'images'),
    mayDeleteImmutable: isAllowed(principal, 'operate', repositoryKey.repository),
  }
}

/** A request that selects nothing must not delete everything. */
function parseSelection(query: URLSearchParams): TagSelection {
  const [text, named] = [query.get('match'), query.getAll('tag')]
  if (text !== null && named.length > 0) throw queryInvalid('match', 'must not be given with tag')
  if (named.length > namedTagsMax) throw new RegistryRefusal('too-many-tags', { max: namedTagsMax })
  if (named.length > 0) return { tags: named.map(parseTag) }
  if (text === null) throw queryInvalid('match', 'must be given, or tag')
  const pattern = parseTagPattern(text)
  if (pattern === undefined) throw queryInvalid('match', 'must be a pattern for tags, such as pr-*')
  return { pattern, after: parseAfter(query) }
}

/** The most entries of each list of the answer. */
const shownMax = 1_000

function showReport(name: string, report: DeletionReport): Answer {
  const shown = <Item, Shown>(items: readonly Item[], show: (item: Item) => Shown) => items.slice(0, shownMax).map(show)
  const digestOf = ({ digest }: { readonly digest: string }) => digest
  return jsonAnswer(200, {
    name,
    dryRun: report.isDryRun,
    tags: shown(report.tags, ({ tag, digest }) => ({ tag, digest })),
    manifests: shown(report.manifests, ({ digest, mediaType, artifactType, sizeBytes, role, tags }) => ({
      digest,
      mediaType,
      artifactType: artifactType ?? null,
      sizeBytes,
      role,
      tags: tags.slice(0, shownMax),
    })),
    remaining: {
      tags: shown(report.otherTags, ({ tag, digest }) => ({ tag, digest })),
      immutable: shown(report.immutable, ({ tag, digest }) => ({ tag, digest })),
      untagged: shown(report.untagged, digestOf),
      listed: shown(report.listed, digestOf),
      children: shown(report.children, ({ digest, parent, isUntagged }) => ({ digest, parent, untagged: isUntagged })),
      referrers: shown(report.referrers, ({ digest, artifactType, subject }) => ({
        digest,
        artifactType: artifactType ?? null,
        subject,
      })),
    },
    bytes: {
      freedNow: 0,
      freedLater: report.freedBytes,
      freedAt: formatTime(report.freedAt),
      isLowerBound: report.hasMore,
    },
    undeletableUntil: formatTime(report.undeletableUntil),
    hasMore: report.hasMore,
    last: report.last ?? null,
  })
}
