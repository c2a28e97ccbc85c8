// Whether a thing exists in another account or nowhere: the same answer byte for byte, by the same statements. Every
// question is asked twice, in a house with a neighbour who has what it is about, and in one without.
import { afterAll, expect, test } from 'bun:test'
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import {
  askAll,
  findDifferences,
  type House,
  moveIn,
  type Neighbour,
  neighbourAccount,
  openHouse,
  questionsAbout,
} from '../../support/api/neighbours.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy } from '../../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { ignoringAccount } from '../../support/stores/lying-stores.ts'

const temporaryFolder = useTemporaryFolders('neighbours')
const houses: House[] = []

afterAll(async () => {
  for (const { registry } of houses) await registry.stop()
})

async function open(wrap?: (metadata: MetadataStore) => MetadataStore): Promise<House> {
  const house = await openHouse(temporaryFolder(), wrap)
  houses.push(house)
  return house
}

/** All answers with the neighbour there, and the questions for the house without him. */
async function askBeside(noun?: Parameters<typeof ignoringAccount>[1], method = '') {
  const house = await open(
    noun === undefined ? undefined : (metadata) => ignoringAccount(metadata, noun, method, neighbourAccount),
  )
  const neighbour = await moveIn(house)
  return { told: await askAll(house, neighbour), neighbour }
}

async function askAlone(neighbour: Neighbour) {
  return askAll(await open(), neighbour)
}

test('the other account really has what the requests are about', async () => {
  const house = await open()
  const neighbour = await moveIn(house)
  const theirs = askedBy(house.registry, neighbour.apiKey)
  const statuses: number[] = []
  for (const { ask } of questionsAbout(neighbour)) statuses.push((await ask(theirs)).status)

  // Deletions among the questions take some of it away again.
  expect(statuses.filter((status) => status < 300).length).toBeGreaterThan(statuses.length / 2)
})

test('every request has the same answer and the same statements, with and without the other account', async () => {
  const { told, neighbour } = await askBeside()
  const alone = await askAlone(neighbour)

  console.log(`isolation: ${told.length} questions, ${told.flatMap(({ statements }) => statements).length} statements`)
  expect(told.length).toBeGreaterThan(150)
  expect(told.every(({ answer }) => !/"the[oa]"/.test(answer))).toBe(true)
  expect(findDifferences(told, alone)).toEqual([])
})

test('the statements are compared: answers from memory or from the store differ by none of them', async () => {
  const { told } = await askBeside()

  expect(told.filter(({ statements }) => statements.length > 0).length).toBeGreaterThan(told.length / 2)
})

test.each([
  ['repositories', 'find', 'tags/list'],
  ['repositories', 'list', '_catalog'],
  ['manifests', 'find', 'GET /v2/{name}/manifests/{reference} in their/app'],
  ['manifests', 'describe', 'HEAD /v2/{name}/manifests/{reference} in their/app'],
  ['manifests', 'listReferrers', 'referrers'],
  ['tags', 'remove', 'DELETE /v2/{name}/manifests/{reference} in their/app'],
  ['blobs', 'find', 'blobs/{digest} in shared/app'],
  ['blobs', 'listHolders', '?mount='],
  ['blobs', 'findLocked', 'other statements'],
  ['uploads', 'find', 'GET /v2/{name}/blobs/uploads/{id} in their/app'],
  ['uploads', 'remove', 'DELETE /v2/{name}/blobs/uploads/{id} in their/app'],
] as const)('control: a store whose %s.%s ignores the account is noticed', async (noun, method, where) => {
  const { told, neighbour } = await askBeside(noun, method)
  const differences = findDifferences(told, await askAlone(neighbour))

  expect(differences.some((difference) => difference.includes(where))).toBe(true)
})

test('a user name that another account has taken is refused: names are what people log in by', async () => {
  const house = await open()
  await addPerson(house.registry, { name: 'theo', roles: ['reader'], account: neighbourAccount })
  const reply = await house.mine.ask('POST', '/api/2021-02-21/users', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'theo', roles: ['reader'] }),
  })

  expect([reply.status, reply.json()]).toEqual([409, { msg: 'a user with this name already exists' }])
})
