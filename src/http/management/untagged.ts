import { formatTime } from '../../lib/quantities.ts'
import type { UntaggedManifest } from '../../ports/untagged.ts'
import { formatPosition, parsePosition } from '../../registry/pages.ts'
import { findRemovalTime, listUntagged, toUntaggedPosition } from '../../registry/untagged.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { repositoriesPath } from '../mounts.ts'
import { nextPageHeaders, openPosition, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

export const untaggedRoutes: readonly Route[] = [
  {
    operationId: 'getUntaggedManifests',
    method: 'GET',
    pattern: `${repositoriesPath}/{name}/-/untagged-manifests`,
    access: 'repository',
    right: 'pull',
    handle: getUntaggedManifests,
    summary: 'List the manifests to which nothing leads',
    description:
      'No tag points to them, no index lists them, and they have no subject that exists. Those that have waited longest come first. `garbage.untagged` decides when they are removed.',
    parameters: ['n', 'last'],
    answers: {
      200: {
        description: 'The manifests.',
        headers: { Link: 'sometimes' },
        content: json('UntaggedManifestsResponse'),
      },
    },
    refusals: ['name-unknown', 'page-size-invalid'],
  },
]

async function getUntaggedManifests({ app, account, repositoryKey, target }: RepositoryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = await listUntagged(app, repositoryKey, {
    after: parsePosition(openPosition(app, after), toUntaggedPosition),
    limit,
  })
  const last = page.hasMore ? page.items.at(-1) : undefined
  const ages = { ...app.settings, untaggedMs: account.untaggedMs ?? app.settings.untaggedMs }
  const show = (manifest: UntaggedManifest) => ({
    digest: manifest.digest,
    mediaType: manifest.mediaType,
    artifactType: manifest.artifactType ?? null,
    sizeBytes: manifest.sizeBytes,
    since: formatTime(manifest.since),
    wasTagged: manifest.wasTagged,
    removedAt: formatTime(findRemovalTime(manifest, ages)),
  })
  return jsonAnswer(
    200,
    { name: repositoryKey.repository, manifests: page.items.map(show) },
    nextPageHeaders(
      `${repositoriesPath}/${repositoryKey.repository}/-/untagged-manifests`,
      limit,
      last && app.sealer.seal(formatPosition(last.since, last.id)),
    ),
  )
}
