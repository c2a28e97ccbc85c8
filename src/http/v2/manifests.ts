import { RegistryRefusal } from '../../oci/errors.ts'
import { withoutParameters } from '../../oci/media-types.ts'
import { findReference, parseReference, parseTag } from '../../oci/names.ts'
import type { ManifestSummary } from '../../ports/manifests.ts'
import { pushManifest } from '../../registry/manifest-push.ts'
import { deleteManifest, describeManifest, getManifest } from '../../registry/manifests.ts'
import { deleteTag } from '../../registry/tags.ts'
import { contentHeaders, isUnchanged, notModified } from '../content-headers.ts'
import type { Answer, RepositoryExchange } from '../exchange.ts'
import { manifestLocation } from '../links.ts'
import { readAtMost } from '../request-body.ts'

/**
 * GET, HEAD /v2/{name}/manifests/{reference} - the bytes that were pushed, as the type they were pushed as. What a client
 * would accept is not asked: nothing is ever converted, and clients that get a type they did not name can tell.
 */
export async function getImageTagManifest(exchange: RepositoryExchange): Promise<Answer> {
  const { app, scope, path, method, request } = exchange
  const text = path['reference'] ?? ''
  const reference = findReference(text)
  if (reference === undefined) throw new RegistryRefusal('manifest-unknown', { reference: text.slice(0, 255) })
  if (method === 'HEAD') {
    const summary = await describeManifest(app, scope, reference)
    if (isUnchanged(request.headers, summary.digest)) return notModified(summary.digest)
    return { status: 200, headers: headersOf(summary), lengthBytes: summary.sizeBytes }
  }
  const manifest = await getManifest(app, scope, reference)
  if (isUnchanged(request.headers, manifest.digest)) return notModified(manifest.digest)
  return { status: 200, headers: headersOf(manifest), body: manifest.bytes, lengthBytes: manifest.sizeBytes }
}

function headersOf({ digest, mediaType }: ManifestSummary): Record<string, string> {
  return contentHeaders(digest, mediaType)
}

/** PUT /v2/{name}/manifests/{reference}, for a digest also with `?tag=` once or more. */
export async function putImageTagManifest(exchange: RepositoryExchange): Promise<Answer> {
  const { app, scope, mount, path, target, request } = exchange
  const reference = parseReference(path['reference'] ?? '')
  const tags = target.query.getAll('tag').map(parseTag)
  if (tags.length > 0 && 'tag' in reference) {
    throw new RegistryRefusal('tag-invalid', { reason: 'tag parameters go with a push by digest' })
  }
  const mediaType = onlyContentType(request.headers.get('content-type') ?? '')
  const max = app.settings.manifestBytesMax
  const bytes = await readAtMost(exchange, max, () => new RegistryRefusal('manifest-too-large', { max }))
  const pushed = await pushManifest(app, scope, { reference, tags, mediaType, bytes })

  const headers: Record<string, string> = {
    location: manifestLocation(mount, scope.repository, pushed.digest),
    'docker-content-digest': pushed.digest,
  }
  // distribution-spec: says that the client need not keep a referrers tag by itself.
  if (pushed.subject !== undefined) headers['oci-subject'] = pushed.subject
  if (tags.length > 0) headers['oci-tag'] = pushed.tags.join(', ')
  return { status: 201, headers }
}

/** A header line given twice reaches us with a comma: two types, and another reader might take the other one. */
function onlyContentType(header: string): string {
  if (header.includes(',')) throw new RegistryRefusal('manifest-type-unsupported', { mediaType: header.slice(0, 255) })
  return withoutParameters(header)
}

/** DELETE /v2/{name}/manifests/{reference} - by tag the tag alone, by digest the manifest and all its tags. */
export async function deleteManifestOrTag({ app, scope, path }: RepositoryExchange): Promise<Answer> {
  const reference = parseReference(path['reference'] ?? '')
  if ('tag' in reference) await deleteTag(app, scope, reference.tag)
  else await deleteManifest(app, scope, reference.digest)
  return { status: 202, headers: {} }
}
