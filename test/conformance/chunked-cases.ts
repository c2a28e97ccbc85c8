// A blob in several chunks, in order and out of it, with the last one in a PATCH or in the closing PUT.
import { checkLife } from './blob-cases.ts'
import { blobOfThreeChunks, type Chunking, pushInChunks } from './blob-pushes.ts'
import type { Case } from './case.ts'
import { type Algorithm, algorithms } from './content.ts'

function chunkedCase(title: string, official: string, algorithm: Algorithm, chunking: Chunking): Case {
  return {
    title: `${title}, by ${algorithm}`,
    official: `${algorithm} blobs/${official}`,
    async check(repository) {
      const blob = await blobOfThreeChunks(repository, repository.name, algorithm)
      await checkLife(repository, blob, pushInChunks(chunking))
    },
  }
}

export const chunkedCases: readonly Case[] = algorithms.flatMap((algorithm) => [
  chunkedCase('takes a blob in three chunks', 'chunked multi', algorithm, {
    isLastInPut: false,
    isOutOfOrder: false,
  }),
  chunkedCase('takes the last of three chunks with the closing PUT', 'chunked multi and put chunk', algorithm, {
    isLastInPut: true,
    isOutOfOrder: false,
  }),
  chunkedCase('answers 416 to chunks that are not the next, and goes on', 'chunked out-of-order', algorithm, {
    isLastInPut: false,
    isOutOfOrder: true,
  }),
  chunkedCase(
    'answers 416 to a closing PUT that is not the next chunk, and goes on',
    'chunked out-of-order and put chunk',
    algorithm,
    { isLastInPut: true, isOutOfOrder: true },
  ),
])
