// Pushes of manifests, and what must be true of a manifest that is there or is not.
import { addressOf, type Reply, type Repository, send } from './client.ts'
import { mediaTypes } from './content.ts'
import type { Manifest } from './data-set.ts'
import { expectContent, expectHeader, expectListed, expectRefusal, expectStatus, locationOf } from './expectations.ts'

const accept = `${mediaTypes.index}, ${mediaTypes.image}`

function addressOfManifest(repository: Repository, reference: string): URL {
  return addressOf(repository, `manifests/${reference}`)
}

/** PUT, as the official suite sends it: chunked, without a Content-Length. */
export async function putManifest(
  repository: Repository,
  reference: string,
  { mediaType, bytes }: Pick<Manifest, 'mediaType' | 'bytes'>,
  tags: readonly string[] = [],
): Promise<Reply> {
  const address = addressOfManifest(repository, reference)
  for (const tag of tags) address.searchParams.append('tag', tag)
  return send(repository, 'PUT', address, { headers: { 'content-type': mediaType }, body: bytes, isStreamed: true })
}

/** Pushes under a tag or the digest, and checks all that the registry answers. */
export async function pushManifest(
  repository: Repository,
  reference: string,
  manifest: Manifest,
  tags: readonly string[] = [],
): Promise<void> {
  const reply = await putManifest(repository, reference, manifest, tags)
  expectStatus(reply, 201)
  expectHeader(reply, 'docker-content-digest', manifest.digest)
  // The sign by which clients know that they need not keep a referrers tag.
  if (manifest.subject !== undefined) expectHeader(reply, 'oci-subject', manifest.subject)
  for (const tag of tags) expectListed(reply, 'oci-tag', tag)
  expectManifestContent(await ask(repository, 'GET', locationOf(reply, repository)), manifest)
}

export async function expectManifestHead(repository: Repository, reference: string, manifest: Manifest): Promise<void> {
  const reply = await ask(repository, 'HEAD', addressOfManifest(repository, reference))
  expectManifestContent(reply, manifest)
  expectHeader(reply, 'docker-content-digest', manifest.digest)
}

export async function expectManifestGet(repository: Repository, reference: string, manifest: Manifest): Promise<void> {
  const reply = await ask(repository, 'GET', addressOfManifest(repository, reference))
  expectManifestContent(reply, manifest)
  expectHeader(reply, 'docker-content-digest', manifest.digest)
}

function expectManifestContent(reply: Reply, { mediaType, bytes }: Manifest): void {
  expectContent(reply, bytes)
  expectHeader(reply, 'content-type', mediaType)
}

export async function getManifest(repository: Repository, reference: string): Promise<Reply> {
  return ask(repository, 'GET', addressOfManifest(repository, reference))
}

async function ask(repository: Repository, method: string, address: URL): Promise<Reply> {
  return send(repository, method, address, { headers: { accept } })
}

export async function expectNoManifest(repository: Repository, reference: string): Promise<void> {
  expectRefusal(await ask(repository, 'HEAD', addressOfManifest(repository, reference)), 404)
  expectRefusal(await getManifest(repository, reference), 404)
}

/** 202 for a tag or a digest, and it is gone with the answer. */
export async function deleteManifest(repository: Repository, reference: string): Promise<void> {
  expectStatus(await send(repository, 'DELETE', addressOfManifest(repository, reference)), 202)
  await expectNoManifest(repository, reference)
}

export async function expectNoManifestToDelete(repository: Repository, reference: string): Promise<void> {
  expectRefusal(await send(repository, 'DELETE', addressOfManifest(repository, reference)), 404)
}
