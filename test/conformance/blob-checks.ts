// What must be true of a blob that is there, and of one that is not.
import { addressOf, type Reply, type Repository, send } from './client.ts'
import type { Content } from './content.ts'
import { expectContent, expectHeader, expectRefusal, expectStatus, locationOf } from './expectations.ts'

function addressOfBlob(repository: Repository, digest: string): URL {
  return addressOf(repository, `blobs/${digest}`)
}

/** The closing answer of a push: 201, the digest, and a Location that leads to the very bytes. */
export async function expectStored(repository: Repository, closing: Reply, { digest, bytes }: Content): Promise<void> {
  expectStatus(closing, 201)
  expectHeader(closing, 'docker-content-digest', digest)
  expectContent(await send(repository, 'GET', locationOf(closing, repository)), bytes)
}

export async function expectBlob(repository: Repository, blob: Content): Promise<void> {
  await expectBlobHead(repository, blob)
  await expectBlobGet(repository, blob)
}

export async function expectBlobHead(repository: Repository, { digest, bytes }: Content): Promise<void> {
  const reply = await send(repository, 'HEAD', addressOfBlob(repository, digest))
  expectContent(reply, bytes)
  expectHeader(reply, 'docker-content-digest', digest)
}

export async function expectBlobGet(repository: Repository, { digest, bytes }: Content): Promise<void> {
  const reply = await send(repository, 'GET', addressOfBlob(repository, digest))
  expectContent(reply, bytes)
  expectHeader(reply, 'docker-content-digest', digest)
}

export async function expectNoBlob(repository: Repository, digest: string): Promise<void> {
  expectRefusal(await send(repository, 'HEAD', addressOfBlob(repository, digest)), 404)
  expectRefusal(await send(repository, 'GET', addressOfBlob(repository, digest)), 404)
}

/** 202, and the blob is gone with the answer, not some time later. */
export async function deleteBlob(repository: Repository, digest: string): Promise<void> {
  expectStatus(await send(repository, 'DELETE', addressOfBlob(repository, digest)), 202)
  await expectNoBlob(repository, digest)
}

export async function expectNothingToDelete(repository: Repository, digest: string): Promise<void> {
  expectRefusal(await send(repository, 'DELETE', addressOfBlob(repository, digest)), 404)
}

/** A part of a blob, as `Range` asks for it. */
export async function getRange(repository: Repository, digest: string, range: string): Promise<Reply> {
  return send(repository, 'GET', addressOfBlob(repository, digest), { headers: { range: `bytes=${range}` } })
}
