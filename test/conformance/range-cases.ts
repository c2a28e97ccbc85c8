// Parts of a blob: RFC 9110, 14, as the distribution-spec has it for GET.
import { deleteBlob, expectStored, getRange } from './blob-checks.ts'
import { pushByPut } from './blob-pushes.ts'
import type { Case } from './case.ts'
import type { Repository } from './client.ts'
import { type Algorithm, algorithms, type Content, noiseBlob } from './content.ts'
import { expectBody, expectHeader, expectRefusal, expectStatus } from './expectations.ts'

const blobBytes = 2048

async function pushBlob(repository: Repository, algorithm: Algorithm): Promise<Content> {
  const blob = noiseBlob(repository.name, blobBytes, algorithm)
  await expectStored(repository, await pushByPut(repository, blob), blob)
  return blob
}

function partCase(title: string, range: string, first: number, last: number, algorithm: Algorithm): Case {
  return {
    title: `${title}, by ${algorithm}`,
    official: `${algorithm} blobs/range requests/range ${range}`,
    async check(repository) {
      const { digest, bytes } = await pushBlob(repository, algorithm)
      const reply = await getRange(repository, digest, range)
      expectStatus(reply, 206)
      expectHeader(reply, 'content-range', `bytes ${first}-${last}/${blobBytes}`)
      expectHeader(reply, 'content-length', String(last - first + 1))
      expectHeader(reply, 'docker-content-digest', digest)
      expectBody(reply, bytes.subarray(first, last + 1))
      await deleteBlob(repository, digest)
    },
  }
}

function unsatisfiableCase(title: string, range: string, algorithm: Algorithm): Case {
  return {
    title: `${title}, by ${algorithm}`,
    official: `${algorithm} blobs/range requests/range ${range}`,
    async check(repository) {
      const { digest } = await pushBlob(repository, algorithm)
      const reply = await getRange(repository, digest, range)
      expectRefusal(reply, 416)
      expectHeader(reply, 'content-range', `bytes */${blobBytes}`)
      await deleteBlob(repository, digest)
    },
  }
}

export const rangeCases: readonly Case[] = algorithms.flatMap((algorithm) => [
  partCase('gives a part from the middle of a blob', '500-1499', 500, 1499, algorithm),
  partCase('gives all of a blob from a byte on', '500-', 500, 2047, algorithm),
  partCase('gives the last bytes of a blob', '-500', 1548, 2047, algorithm),
  partCase('gives what there is of a part that goes beyond the end of a blob', '2000-5000', 2000, 2047, algorithm),
  unsatisfiableCase('answers 416 to a range that ends before it starts', '500-0', algorithm),
  unsatisfiableCase('answers 416 to a range behind the end of a blob', '5000-10000', algorithm),
])
