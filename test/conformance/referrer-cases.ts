// Manifests that refer to others, and the list that tells of them.
import { referrerSets } from './artifact-sets.ts'
import type { Case } from './case.ts'
import type { Repository } from './client.ts'
import { mediaTypes } from './content.ts'
import { type DataSet, DataSetBuilder } from './data-set.ts'
import { casesOf, pushSet } from './data-set-cases.ts'
import { expectReferrers } from './list-checks.ts'
import { deleteManifest } from './manifest-checks.ts'

interface Relation {
  readonly set: DataSet
  readonly subject: string
  readonly referrer: string
}

async function pushRelation(repository: Repository): Promise<Relation> {
  const builder = new DataSetBuilder(repository.name)
  const subject = builder.addImage()
  const layer = builder.addNoise(mediaTypes.exampleOne)
  const referrer = builder.addArtifact({ artifactType: mediaTypes.exampleOne, layer, subject })
  const set = builder.build()
  await pushSet(repository, set)
  return { set, subject: subject.digest, referrer: referrer.digest }
}

async function deleteReferrer(repository: Repository): Promise<void> {
  const { subject, referrer } = await pushRelation(repository)
  await deleteManifest(repository, referrer)
  await expectReferrers(repository, subject, [])
}

async function deleteSubject(repository: Repository): Promise<void> {
  const { set, subject } = await pushRelation(repository)
  await deleteManifest(repository, subject)
  await expectReferrers(repository, subject, set.referrers.get(subject) ?? [])
}

export const referrerCases: readonly Case[] = [
  ...referrerSets.flatMap(casesOf),
  // The official suite deletes, but does not look at the list afterwards.
  { title: 'drops a deleted referrer from the list', official: 'artifacts-with-subject/delete', check: deleteReferrer },
  { title: 'lists referrers of a deleted subject', official: 'artifacts-with-subject/delete', check: deleteSubject },
]
