// Two accounts in one registry, and every request with which one could learn what the other has.
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import { digestOf, imageOf, indexOf, pushApiImage, pushBlob, putManifest } from '../../support/api/api-images.ts'
import type { Question, Reply } from '../../support/api/api-server.ts'
import { mounts } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askFor, fillStock, type Operation, operations, type Stock } from '../../support/api/route-examples.ts'
import { askedBy, type WiredRegistry, wireRegistry } from '../../support/api/wired-registry.ts'

export interface TwoAccounts {
  readonly registry: WiredRegistry
  /** The registry, asked by a user of the account `mine`. */
  readonly mine: WiredRegistry
}

/** What only the other account has. */
export interface OtherAccount {
  readonly stock: Stock
  readonly sharedStock: Stock
  readonly index: string
  readonly apiKey: string
}

export const otherAccountName = 'theirs'
const theirImage = imageOf({ layers: ['a layer'] })
const sharedName = 'shared/app'

/** Fills only `mine`: one repository, whose name and one of whose layers the other account will use too. */
export async function openTwoAccounts(
  dataDir: string,
  wrap?: (metadata: MetadataStore) => MetadataStore,
): Promise<TwoAccounts> {
  const registry = await wireRegistry(dataDir, wrap === undefined ? {} : { wrap })
  const key = await addPerson(registry, { name: 'mia', roles: ['admin'], account: 'mine' })
  const mine = askedBy(registry, key)
  await pushApiImage(mine, sharedName, 'my-own', { config: '{"mine":true}', layers: ['a common layer'] })
  return { registry, mine }
}

/** Fills the other account with every kind of data. */
export async function fillOtherAccount({ registry }: TwoAccounts): Promise<OtherAccount> {
  const key = await addPerson(registry, { name: 'theo', roles: ['admin'], account: otherAccountName })
  const theirs = askedBy(registry, key)
  await addPerson(registry, { name: 'thea', roles: [], account: otherAccountName })
  const user = { user: 'thea', apiKeyName: 'test' }
  const [stock, sharedStock] = [await fillStock(theirs, 'their/app', user), await fillStock(theirs, sharedName, user)]
  for (const name of [stock.repository, sharedName]) {
    await pushBlob(theirs, name, 'a common layer')
    await pushApiImage(theirs, name, 'signature', { subject: theirImage.descriptor, artifactType: 'a/signature' })
    await putManifest(theirs, name, 'index', indexOf([theirImage.descriptor]))
  }
  return { stock, sharedStock, index: indexOf([theirImage.descriptor]).digest, apiKey: key }
}

interface AskedQuestion {
  readonly title: string
  readonly ask: (server: WiredRegistry) => Promise<Reply>
}

/** The order matters: some requests change the account `mine`. */
export function questionsAbout({ stock, sharedStock, index }: OtherAccount): readonly AskedQuestion[] {
  const isAboutSomething = ({ route: { access, operationId } }: Operation) =>
    access !== 'anyone' && !['postUser', 'enableService', 'disableService'].includes(operationId)
  return [
    ...[stock, sharedStock].flatMap((its) =>
      operations.filter(isAboutSomething).map((operation) => ({
        title: `${operation.title} in ${its.repository}`,
        ask: (server: WiredRegistry) => askFor(server, operation, its),
      })),
    ),
    ...mounts.flatMap((mount) => [
      ...[stock, sharedStock].flatMap((its) => references(mount, its, index)),
      ...pushes(mount, stock),
    ]),
  ]
}

function question(method: string, path: string, rest: Question = {}, title = `${method} ${path}`): AskedQuestion {
  return { title, ask: (server) => server.ask(method, path, rest) }
}

function references(mount: string, { repository, imageDigest, spareDigest }: Stock, index: string): AskedQuestion[] {
  const at = `${mount}/${repository}`
  return [
    ...['GET', 'HEAD', 'DELETE'].flatMap((method) =>
      [imageDigest, index, 'index', 'signature'].map((reference) => question(method, `${at}/manifests/${reference}`)),
    ),
    ...[digestOf('a layer'), digestOf('a common layer'), spareDigest].map((digest) =>
      question('HEAD', `${at}/blobs/${digest}`),
    ),
    question('GET', `${at}/referrers/${imageDigest}?artifactType=a/signature`),
    question('GET', `${at}/tags/list?n=1`),
    question('GET', `${mount}/_catalog?n=1&last=shared`),
  ]
}

function pushes(mount: string, { repository, spareDigest }: Stock): AskedQuestion[] {
  const at = `${mount}/my/fresh`
  const uploads = `${at}/blobs/uploads/`
  const put = (manifest: { mediaType: string; bytes: string }) => ({
    headers: { 'content-type': manifest.mediaType },
    body: manifest.bytes,
  })
  return [
    question('POST', `${uploads}?mount=${spareDigest}&from=${repository}`),
    question('POST', `${uploads}?mount=${spareDigest}&from=${sharedName}`),
    question('POST', `${uploads}?mount=${spareDigest}`),
    question('PUT', `${at}/manifests/v1`, put(theirImage), 'PUT a manifest that names blobs of theirs'),
    question('PUT', `${at}/manifests/v1`, put(indexOf([theirImage.descriptor])), 'PUT an index that names theirs'),
    question('POST', `${uploads}?digest=${digestOf('a spare blob')}`, { body: 'a spare blob' }),
    question('GET', `${at}/blobs/${spareDigest}`),
  ]
}

/** An answer as the asker sees it, and what it took. Random ids and times are blanked. */
export interface Told {
  readonly title: string
  readonly answer: string
  readonly statements: readonly string[]
}

const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
/** Encrypted with a key of the store. */
const sealedId = /evt_[\w-]+/g
const time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z/g

export async function askAll({ registry, mine }: TwoAccounts, other: OtherAccount): Promise<Told[]> {
  const told: Told[] = []
  for (const { title, ask } of questionsAbout(other)) {
    registry.statements.length = 0
    const { status, headers, text } = await ask(mine)
    headers.delete('x-request-id')
    const seen = JSON.stringify([status, [...headers].toSorted(), text])
    const answer = seen.replaceAll(uuid, '<id>').replaceAll(time, '<time>').replaceAll(sealedId, '<id>')
    // Rows are numbered for all accounts together, so numbers differ; no answer contains them.
    const statements = registry.statements.map((one) => one.replaceAll(uuid, '<id>').replaceAll(/(?<=[[,])\d+/g, '#'))
    told.push({ title, answer, statements })
  }
  return told
}

/** Lists where the two differ in answers or statements. */
export function findDifferences(ones: readonly Told[], others: readonly Told[]): string[] {
  return ones.flatMap(({ title, answer, statements }, at) => {
    const other = others[at]
    return [
      ...(answer === other?.answer ? [] : [`${title}: ${answer} or ${other?.answer}`]),
      ...(String(statements) === String(other?.statements) ? [] : [`${title}: other statements`]),
    ]
  })
}
