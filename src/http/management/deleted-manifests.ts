import { formatTime } from '../../lib/quantities.ts'
import { parseDigest } from '../../oci/digest.ts'
import type { DeletedManifest } from '../../ports/deleted-manifests.ts'
import {
  listDeletedManifests,
  purgeDeletedManifest,
  toDeletedPosition,
  undeleteManifest,
  undeleteRepository,
} from '../../registry/deleted-manifests.ts'
import { formatPosition, parsePosition } from '../../registry/pages.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { repositoriesPath } from '../mounts.ts'
import { nextPageHeaders, openPosition, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

export const deletedManifestRoutes: readonly Route[] = [
  {
    operationId: 'getDeletedManifests',
    method: 'GET',
    pattern: `${repositoriesPath}/{name}/-/deleted-manifests`,
    access: 'repository',
    right: 'pull',
    handle: getDeletedManifests,
    summary: 'List the manifests that can be undeleted',
    description: 'The last deletions come first. `garbage.undelete` decides how long a deleted manifest is kept.',
    parameters: ['n', 'last'],
    answers: {
      200: {
        description: 'The manifests.',
        headers: { Link: 'sometimes' },
        content: json('DeletedManifestsResponse'),
      },
    },
    refusals: ['name-unknown', 'page-size-invalid'],
  },
  {
    operationId: 'undeleteManifest',
    method: 'POST',
    pattern: `${repositoriesPath}/{name}/-/manifests/{digest}/undelete`,
    access: 'repository',
    right: 'push',
    handle: postUndelete,
    summary: 'Bring a deleted manifest back, with its tags',
    description:
      'Tags that exist again by now stay where they point. If it is an index, the deleted manifests that it lists come back too.',
    parameters: ['manifestDigest'],
    answers: { 200: { description: 'What came back.', content: json('UndeleteResponse') } },
    refusals: [
      'name-unknown',
      'digest-invalid',
      'digest-unsupported',
      'manifest-unknown',
      'manifest-blob-unknown',
      'disk-low',
    ],
  },
  {
    operationId: 'undeleteRepository',
    method: 'POST',
    pattern: `${repositoriesPath}/{name}/-/undelete`,
    access: 'repository',
    right: 'push',
    handle: postUndeleteRepository,
    summary: 'Bring back what the deletion of a repository deleted',
    description:
      'Manifests that were deleted by themselves stay deleted. One request looks at up to 1,000 manifests; while `hasMore` is true, repeat it.',
    answers: { 200: { description: 'What came back.', content: json('UndeleteRepositoryResponse') } },
    refusals: ['name-unknown', 'disk-low'],
  },
  {
    operationId: 'purgeDeletedManifest',
    method: 'DELETE',
    pattern: `${repositoriesPath}/{name}/-/deleted-manifests/{digest}`,
    access: 'repository',
    right: 'delete',
    handle: deleteForGood,
    summary: 'Delete a deleted manifest for good',
    description: 'It can no longer be undeleted, and the collector may remove what only it used.',
    parameters: ['manifestDigest'],
    answers: { 204: { description: 'It is deleted for good.' } },
    refusals: ['name-unknown', 'digest-invalid', 'digest-unsupported', 'manifest-unknown'],
  },
]

async function getDeletedManifests({ app, repositoryKey, target }: RepositoryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const before = parsePosition(openPosition(app, after), toDeletedPosition)
  const page = await listDeletedManifests(app, repositoryKey, { before, limit })
  const last = page.hasMore ? page.items.at(-1) : undefined
  const show = (manifest: DeletedManifest) => ({
    digest: manifest.digest,
    mediaType: manifest.mediaType,
    artifactType: manifest.artifactType ?? null,
    sizeBytes: manifest.sizeBytes,
    tags: manifest.tags,
    deletedAt: formatTime(manifest.deletedAt),
    deletedBy: manifest.deletedBy,
    cause: manifest.cause,
    undeletableUntil: formatTime(manifest.deletedAt + app.settings.undeleteMs),
  })
  return jsonAnswer(
    200,
    { name: repositoryKey.repository, manifests: page.items.map(show) },
    nextPageHeaders(
      `${repositoriesPath}/${repositoryKey.repository}/-/deleted-manifests`,
      limit,
      last && app.sealer.seal(formatPosition(last.deletedAt, last.id)),
    ),
  )
}

async function postUndelete({ app, principal, repositoryKey, path }: RepositoryExchange): Promise<Answer> {
  const digest = parseDigest(path['digest'] ?? '')
  const undeleted = await undeleteManifest(app, repositoryKey, digest, principal)
  return jsonAnswer(200, { name: repositoryKey.repository, ...undeleted })
}

async function postUndeleteRepository({ app, principal, repositoryKey }: RepositoryExchange): Promise<Answer> {
  const undeleted = await undeleteRepository(app, repositoryKey, principal)
  return jsonAnswer(200, { name: repositoryKey.repository, ...undeleted })
}

async function deleteForGood({ app, repositoryKey, path }: RepositoryExchange): Promise<Answer> {
  await purgeDeletedManifest(app, repositoryKey, parseDigest(path['digest'] ?? ''))
  return { status: 204, headers: {} }
}
