import { parseDigest } from '../../oci/digest.ts'
import type { PlatformEntry } from '../../oci/image-content.ts'
import { describeImage, type ImageDetails } from '../../registry/image-details.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { repositoriesPath } from '../mounts.ts'
import { json, type Route } from '../route.ts'

export const imageDetailRoutes: readonly Route[] = [
  {
    operationId: 'getImage',
    method: 'GET',
    pattern: `${repositoriesPath}/{name}/-/manifests/{digest}`,
    access: 'repository',
    right: 'pull',
    handle: getImage,
    summary: 'Get the platforms, config, layers, history, tags and referrers of an image',
    description:
      'A config of more than 1 MiB is left out. At most 100 tags and 200 referrers are listed; `isCut` tells whether there are more.',
    parameters: ['manifestDigest'],
    answers: { 200: { description: 'The image.', content: json('ImageResponse') } },
    refusals: ['name-unknown', 'digest-invalid', 'digest-unsupported', 'manifest-unknown'],
  },
]

async function getImage({ app, repositoryKey, path, reserve }: RepositoryExchange): Promise<Answer> {
  const digest = parseDigest(path['digest'] ?? '')
  const image = await describeImage(app, repositoryKey, digest, reserve)
  return jsonAnswer(200, { name: repositoryKey.repository, ...show(image) })
}

function show({ node, platforms, config, history, ...rest }: ImageDetails) {
  const { digest, mediaType, artifactType, subject, sizeBytes } = node
  return {
    digest,
    mediaType,
    artifactType: artifactType ?? null,
    subject: subject ?? null,
    sizeBytes,
    ...rest,
    platforms: platforms.map(showPlatform),
    config:
      config === undefined
        ? null
        : { ...config, ...nullsFor(config, ['created', 'os', 'architecture', 'variant', 'user', 'workingDir']) },
    history: history.map((step) => ({ ...step, ...nullsFor(step, ['created', 'createdBy', 'comment', 'layer']) })),
  }
}

function showPlatform(entry: PlatformEntry) {
  return { ...entry, ...nullsFor(entry, ['os', 'architecture', 'variant', 'attests']) }
}

/** JSON would leave out what is undefined. */
function nullsFor<T extends object, Key extends keyof T>(value: T, keys: readonly Key[]): Record<Key, T[Key] | null> {
  return Object.fromEntries(keys.map((key) => [key, value[key] ?? null])) as Record<Key, T[Key] | null>
}
