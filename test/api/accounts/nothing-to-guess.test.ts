// An answer does not tell whether something exists in another account: it is the same byte for byte, with the same
// statements. Every request is sent twice, with and without another account that has what the request is about.
import { afterAll, expect, test } from 'bun:test'
import type { MetadataStore, Tables } from '../../../src/ports/metadata-store.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy } from '../../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { around } from '../../support/clocks/gates.ts'
import {
  askAll,
  fillOtherAccount,
  findDifferences,
  type OtherAccount,
  openTwoAccounts,
  otherAccountName,
  questionsAbout,
  type TwoAccounts,
} from './other-account.ts'

const temporaryFolder = useTemporaryFolders('other-account')
const opened: TwoAccounts[] = []

afterAll(async () => {
  for (const { registry } of opened) await registry.stop()
})

async function open(wrap?: (metadata: MetadataStore) => MetadataStore): Promise<TwoAccounts> {
  const accounts = await openTwoAccounts(temporaryFolder(), wrap)
  opened.push(accounts)
  return accounts
}

/** A store in which one look-up goes on in the other account if the right one has nothing. */
const ignoringAccount = (metadata: MetadataStore, noun: keyof Tables, method: string) =>
  around(metadata, noun, method, async (call, values, tables) => {
    const found = await call(...values)
    const accountId = (await tables.accounts.find(otherAccountName))?.id
    if (accountId === undefined || (Array.isArray(found) ? found.length > 0 : found)) return found
    // The account is the first argument, or a member of one.
    const others = values.map((value, at) => {
      if (at === 0 && typeof value === 'number') return accountId
      return typeof value === 'object' && value !== null && 'accountId' in value ? { ...value, accountId } : value
    })
    return call(...others)
  })

/** All answers while the other account is filled, and what is needed to ask again without it. */
async function askBeside(noun?: keyof Tables, method = '') {
  const accounts = await open(noun === undefined ? undefined : (metadata) => ignoringAccount(metadata, noun, method))
  const other = await fillOtherAccount(accounts)
  return { told: await askAll(accounts, other), other }
}

async function askAlone(other: OtherAccount) {
  return askAll(await open(), other)
}

test('the other account really has what the requests are about', async () => {
  const accounts = await open()
  const other = await fillOtherAccount(accounts)
  const theirs = askedBy(accounts.registry, other.apiKey)
  const statuses: number[] = []
  for (const { ask } of questionsAbout(other)) statuses.push((await ask(theirs)).status)

  // Deletions among the questions take some of it away again.
  expect(statuses.filter((status) => status < 300).length).toBeGreaterThan(statuses.length / 2)
})

test('every request has the same answer and the same statements, with and without the other account', async () => {
  const { told, other } = await askBeside()
  const alone = await askAlone(other)

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
  const { told, other } = await askBeside(noun, method)
  const differences = findDifferences(told, await askAlone(other))

  expect(differences.some((difference) => difference.includes(where))).toBe(true)
})

test('a user name that another account has taken is refused: names are what people log in by', async () => {
  const accounts = await open()
  await addPerson(accounts.registry, { name: 'theo', roles: ['reader'], account: otherAccountName })
  const reply = await accounts.mine.ask('POST', '/api/2021-02-21/users', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'theo', roles: ['reader'] }),
  })

  expect([reply.status, reply.json()]).toEqual([409, { msg: 'a user with this name already exists' }])
})
