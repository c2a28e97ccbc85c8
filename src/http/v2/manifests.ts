import { andThen } from '../../lib/and-then.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { dockerManifest, dockerManifestList, ociIndex, ociManifest, withoutParameters } from '../../oci/media-types.ts'
import { findReference, parseReference, parseTag } from '../../oci/names.ts'
import type { Awaitable } from '../../ports/awaitable.ts'
import type { ManifestSummary } from '../../ports/manifests.ts'
import { isAllowed } from '../../registry/access.ts'
import { pushManifest } from '../../registry/manifest-push.ts'
import { deleteManifest, describeManifest, getManifest } from '../../registry/manifests.ts'
import { deleteTag } from '../../registry/tags.ts'
import type { Answer } from '../answer.ts'
import { ContentHeaders, isUnchanged, notModified } from '../content-headers.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { manifestLocation } from '../mounts.ts'
import { readAtMost } from '../request-body.ts'
import type { Route } from '../route.ts'

export const manifestRoutes: readonly Route[] = [
  {
    operationId: 'getImageTagManifest',
    method: 'GET',
    pattern: '/{name}/manifests/{reference}',
    access: 'repository',
    right: 'pull',
    handle: getImageTagManifest,
    summary: 'Get a manifest by tag or digest',
    description: 'Always with the media type of its push; `Accept` is ignored.',
    parameters: ['ifNoneMatch'],
    answers: {
      200: {
        description: 'The manifest, byte for byte.',
        headers: { 'Docker-Content-Digest': 'always', ETag: 'always', 'Content-Security-Policy': 'always' },
        content: {
          [dockerManifest]: 'ManifestResponse',
          [ociManifest]: 'ManifestResponse',
          [ociIndex]: 'ManifestResponse',
          // Only where the setting `manifests.additional_media_types` contains it.
          [dockerManifestList]: 'ManifestResponse',
        },
      },
      304: { description: 'Not changed.', headers: { 'Docker-Content-Digest': 'always', ETag: 'always' } },
    },
    refusals: ['name-unknown', 'manifest-unknown'],
  },
  {
    operationId: 'putImageTagManifest',
    method: 'PUT',
    pattern: '/{name}/manifests/{reference}',
    access: 'repository',
    right: 'push',
    handle: putImageTagManifest,
    summary: 'Register a manifest by tag or digest',
    description:
      'All content that the manifest names must have been pushed before, except layers with `urls`. With `manifests.missing_content` `allow`, any content may be missing. The subject may always be missing.',
    parameters: ['moreTags'],
    requestBody: {
      required: true,
      content: {
        [dockerManifest]: 'ImageManifestUpload',
        [ociManifest]: 'ImageManifestUpload',
        [ociIndex]: 'ImageIndexUpload',
      },
    },
    answers: {
      201: {
        description: 'The manifest is stored, and its tags point to it.',
        headers: {
          Location: 'always',
          'Docker-Content-Digest': 'always',
          'OCI-Subject': 'sometimes',
          'OCI-Tag': 'sometimes',
        },
      },
    },
    refusals: [
      'quota-exceeded',
      'disk-low',
      'tag-invalid',
      'too-many-tags',
      'tag-immutable',
      'digest-invalid',
      'digest-unsupported',
      'digest-mismatch',
      'manifest-invalid',
      'manifest-type-unsupported',
      'manifest-too-large',
      'manifest-blob-unknown',
    ],
  },
  {
    operationId: 'deleteManifest',
    method: 'DELETE',
    pattern: '/{name}/manifests/{reference}',
    access: 'repository',
    right: 'delete',
    handle: deleteManifestOrTag,
    summary: 'Delete a tag, or a manifest with all its tags',
    description: 'The deletion of an immutable tag needs the right `operate`.',
    answers: { 202: { description: 'It is deleted.' } },
    refusals: [
      'tag-invalid',
      'digest-invalid',
      'digest-unsupported',
      'name-unknown',
      'manifest-unknown',
      'manifest-in-use',
      'tag-immutable',
    ],
  },
]

/** `Accept` is ignored: manifests are never converted, and a client can see the media type of the answer. */
function getImageTagManifest(exchange: RepositoryExchange): Awaitable<Answer> {
  const { app, repositoryKey, path, method, request } = exchange
  const text = path['reference'] ?? ''
  const reference = findReference(text)
  if (reference === undefined) throw new RegistryRefusal('manifest-unknown', { reference: text.slice(0, 255) })
  if (method === 'HEAD') {
    return andThen(describeManifest(app, repositoryKey, reference), (summary) => {
      if (isUnchanged(request.headers, summary.digest)) return notModified(summary.digest)
      return { status: 200, headers: headersOf(summary), lengthBytes: summary.sizeBytes }
    })
  }
  return andThen(getManifest(app, repositoryKey, reference), (manifest) => {
    if (isUnchanged(request.headers, manifest.digest)) return notModified(manifest.digest)
    return { status: 200, headers: headersOf(manifest), body: manifest.bytes, lengthBytes: manifest.sizeBytes }
  })
}

const contentHeaders = new ContentHeaders()

function headersOf({ digest, mediaType }: ManifestSummary): Headers {
  return contentHeaders.of(digest, mediaType)
}

async function putImageTagManifest(exchange: RepositoryExchange): Promise<Answer> {
  const { app, repositoryKey, mount, path, target, request } = exchange
  const reference = parseReference(path['reference'] ?? '')
  const tags = target.query.getAll('tag').map(parseTag)
  if (tags.length > 0 && 'tag' in reference) {
    throw new RegistryRefusal('tag-invalid', { reason: 'tag parameters go with a push by digest' })
  }
  const mediaType = onlyContentType(request.headers.get('content-type') ?? '')
  const max = app.settings.manifestBytesMax
  const bytes = await readAtMost(exchange, max, () => new RegistryRefusal('manifest-too-large', { max }))
  const pushed = await pushManifest(app, repositoryKey, {
    actor: exchange.principal,
    reference,
    tags,
    mediaType,
    bytes,
  })

  const headers: Record<string, string> = {
    location: manifestLocation(mount, repositoryKey.repository, pushed.digest),
    'docker-content-digest': pushed.digest,
  }
  // distribution-spec: this header tells the client that it need not maintain a referrers tag itself.
  if (pushed.subject !== undefined) headers['oci-subject'] = pushed.subject
  if (tags.length > 0) headers['oci-tag'] = pushed.tags.join(', ')
  return { status: 201, headers }
}

/** Bun joins repeated header lines with a comma. Of two types, another reader might choose the other one. */
function onlyContentType(header: string): string {
  if (header.includes(',')) throw new RegistryRefusal('manifest-type-unsupported', { mediaType: header.slice(0, 255) })
  return withoutParameters(header)
}

async function deleteManifestOrTag({ app, principal, repositoryKey, path }: RepositoryExchange): Promise<Answer> {
  const reference = parseReference(path['reference'] ?? '')
  const isOperator = isAllowed(principal, 'operate', repositoryKey.repository)
  if ('tag' in reference) await deleteTag(app, repositoryKey, reference.tag, principal, isOperator)
  else await deleteManifest(app, repositoryKey, reference.digest, principal, isOperator)
  return { status: 202, headers: {} }
}
