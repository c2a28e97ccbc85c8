// The contract of repositories.
import { describe, expect, test } from 'bun:test'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addManifest, named, openShelf, patterned } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function repositoriesContract(open: OpenMetadataStore): void {
  test('are created by their first use, once by many at once, and found after it', async () => {
    const metadata = await open()
    const { id: accountId } = await metadata.accounts.ensure('acme')
    const scope = { accountId, repository: named('team/app') }
    expect(await metadata.repositories.find(scope)).toBeUndefined()

    const created = await Promise.all(Array.from({ length: 10 }, () => metadata.repositories.ensure(scope)))

    expect(new Set(created.map(({ id }) => id)).size).toBe(1)
    expect(await metadata.repositories.find(scope)).toEqual({ accountId, id: created[0]?.id ?? 0 })
  })

  test('cannot belong to an account that is not there', async () => {
    const metadata = await open()

    const making = metadata.repositories.ensure({ accountId: 999_999, repository: named('app') })

    expect(await outcomeOf(making)).toBe('refused')
  })

  test('are listed, and counted as images, while they are marked; the mark goes with the last manifest', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, accountId } = shelf
    const look = async () => [
      ...(await metadata.repositories.list(accountId, undefined, 10)),
      (await metadata.usage.findOfAccount(accountId)).images,
      (await metadata.transaction((tables) => tables.repositories.ensure(shelf.scope))).isImage,
    ]
    expect(await look()).toEqual([0, false])

    const { id } = await addManifest(shelf, 'one')
    for (let times = 0; times < 2; times += 1) {
      await metadata.transaction(({ repositories }) => repositories.markAsImage(repository))
      await metadata.transaction(({ repositories }) => repositories.unmarkIfEmpty(repository))
      expect(await look()).toEqual([named('app'), 1, true])
    }

    await metadata.transaction(async ({ manifests, repositories }) => {
      await repositories.lockForRemoval(repository, 1)
      await manifests.remove(repository, id)
      await repositories.unmarkIfEmpty(repository)
    })
    expect(await look()).toEqual([0, false])
  })

  test('are listed in byte order, page by page', async () => {
    const metadata = await open()
    // Byte order, not the order of a language: a dash before a digit, a digit before a letter, a slash before both.
    const names = ['a', 'a-b', 'a.b', 'a/b', 'a0', 'a_b', 'ab', 'b', 'b--c', 'z9']
    for (const name of names.toReversed()) {
      const { repository } = await openShelf(metadata, 'acme', name)
      await metadata.repositories.markAsImage(repository)
    }
    const { accountId } = await openShelf(metadata)

    const all = await metadata.repositories.list(accountId, undefined, 100)
    expect(all.map(String)).toEqual(names)
    expect(await metadata.repositories.list(accountId, 'a.b', 3)).toEqual(['a/b', 'a0', 'a_b'].map(named))
    expect(await metadata.repositories.list(accountId, 'a!', 2)).toEqual(['a-b', 'a.b'].map(named))
    expect(await metadata.repositories.list(accountId, 'z9', 10)).toEqual([])
  })

  describe('are listed within patterns', () => {
    test('without those that hold no manifest, and without those of another account', async () => {
      const metadata = await open()
      const accountId = await fill(metadata, ['team/app'])
      await openShelf(metadata, 'acme', 'team/empty')
      await fill(metadata, ['team/theirs'], 'rival')

      const list = (...patterns: string[]) =>
        metadata.repositories.list(accountId, undefined, 10, patterns.map(patterned))
      expect(await list('team/*')).toEqual([named('team/app')])
      expect([await list('team/app', 'team/empty', 'team/theirs'), await list()]).toEqual([[named('team/app')], []])
    })

    test('of a thousand names as a reader of the rules would list them, whatever the page', async () => {
      const metadata = await open()
      const names = thousandNames()
      const accountId = await fill(metadata, names)
      expect(names).toHaveLength(1_000)

      for (const patterns of manyPatterns) {
        const wanted = names.filter((name) => patterns.some((pattern) => toRegExp(pattern).test(name)))
        for (const limit of [1_000, 37, 3]) {
          const pages = await walk(metadata, accountId, limit, patterns)
          expect({ patterns, listed: pages.flat() }).toEqual({ patterns, listed: wanted })
          expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true)
        }
      }
    })
  })
}

/** Repositories with a manifest each. */
async function fill(metadata: MetadataStore, names: readonly string[], account = 'acme'): Promise<number> {
  const { id: accountId } = await metadata.accounts.ensure(account)
  await metadata.transaction(async ({ repositories }) => {
    for (const name of names) {
      await repositories.markAsImage(await repositories.ensure({ accountId, repository: named(name) }))
    }
  })
  return accountId
}

/** Pages until one is not full. */
async function walk(metadata: MetadataStore, accountId: number, limit: number, patterns: readonly string[]) {
  const pages: string[][] = []
  do {
    const page = await metadata.repositories.list(accountId, pages.at(-1)?.at(-1), limit, patterns.map(patterned))
    pages.push(page.map(String))
  } while (pages.at(-1)?.length === limit && pages.length < 1_000)
  return pages
}

const pieces = ['team', 'team_a', 'teamxa', 'team-a', 'team0', 'public', 'lib.x', 'a__b', 'z', '0']

/** In byte order: every three of the pieces, with every way to join them. */
function thousandNames(): string[] {
  const joined = pieces.flatMap((one, at) =>
    pieces.flatMap((two, to) =>
      pieces.map((three, by) => one + '/-_./'.charAt((at + to + by) % 5) + two + '/' + three),
    ),
  )
  return [...new Set(joined)].toSorted()
}

const manyPatterns: readonly (readonly string[])[] = [
  ['team/*'],
  ['team_a*'],
  ['*/public'],
  ['*_a/*'],
  ['team*', 'z*/z', '*public*'],
  ['*a*_*b*'],
  ['0*', 'z*'],
  ['team/z/z', 'team/z/z', 'nothing/like/that', 'team/*/z'],
  ['*'],
  // One within another, and both beside one that begins alike.
  ['team*', 'team/*', 'team/team/*', 'team_a/*', 'team_a/0/z'],
  ['team/team/*', 'team/*/z', 'team/t*m/0', 'team/team/team'],
  // Far apart, with names before, between, behind and within.
  ['0/0/*', 'z/z/*', 'z_z/z'],
  ['0/0/0', 'lib.x*', '0.0/z', 'public*', 'team/0/0', 'team/0/z', 'z*', 'z/z/z'],
  ['0/0/0', 'team/0/z', 'zz/zz', 'a__b/z/z', 'team-a.0/0', 'nothing/here'],
]

/** The rule once more, by other means. */
function toRegExp(pattern: string): RegExp {
  return new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
}
