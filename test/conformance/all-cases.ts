// Every case there is, for the control: a case that nothing can fail would prove nothing.
import { artifactSets } from './artifact-sets.ts'
import { blobCases } from './blob-cases.ts'
import type { Case } from './case.ts'
import { chunkedCases } from './chunked-cases.ts'
import { casesOf } from './data-set-cases.ts'
import { imageSets, sparseSets } from './image-sets.ts'
import { onceCases } from './once-cases.ts'
import { rangeCases } from './range-cases.ts'
import { referrerCases } from './referrer-cases.ts'

export const imageCases: readonly Case[] = [...imageSets, ...artifactSets].flatMap(casesOf)

export const sparseCases: readonly Case[] = sparseSets.flatMap(casesOf)

export const allCases: readonly Case[] = [
  ...onceCases,
  ...blobCases,
  ...chunkedCases,
  ...rangeCases,
  ...imageCases,
  ...referrerCases,
  ...sparseCases,
]
