// The contract of repositories.
import { describe, expect, test } from 'bun:test'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { named, openShelf, patterned } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function repositoriesContract(open: OpenMetadataStore): void {
  test('are made by their first use and found after it', async () => {
    const metadata = await open()
    const { id: accountId } = await metadata.accounts.ensure('acme')
    const scope = { accountId, repository: named('team/app') }

    expect(await metadata.repositories.find(scope)).toBeUndefined()
    const made = await metadata.repositories.ensure(scope)

    expect(made.accountId).toBe(accountId)
    expect(await metadata.repositories.find(scope)).toEqual(made)
    expect(await metadata.repositories.ensure(scope)).toEqual(made)
  })

  test('made by many at once are one', async () => {
    const { metadata, scope } = await openShelf(await open())
    const fresh = { ...scope, repository: named('fresh') }

    const made = await Promise.all(Array.from({ length: 10 }, () => metadata.repositories.ensure(fresh)))

    expect(new Set(made.map((repository) => repository.id)).size).toBe(1)
  })

  test('cannot belong to an account that is not there', async () => {
    const metadata = await open()

    const making = metadata.repositories.ensure({ accountId: 999_999, repository: named('app') })

    expect(await outcomeOf(making)).toBe('refused')
  })

  test('count their manifests and tell the new number', async () => {
    const { metadata, repository } = await openShelf(await open())

    expect(await metadata.repositories.changeManifestCount(repository, 1)).toBe(1)
    expect(await metadata.repositories.changeManifestCount(repository, 1)).toBe(2)
    expect(await metadata.repositories.changeManifestCount(repository, -1)).toBe(1)
    expect(await metadata.repositories.changeManifestCount(repository, -1)).toBe(0)
    expect(await outcomeOf(metadata.repositories.changeManifestCount(repository, -1))).toBe('refused')
  })

  test('are listed while they have a manifest', async () => {
    const { metadata, repository, accountId } = await openShelf(await open())

    expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([])
    await metadata.repositories.changeManifestCount(repository, 1)
    expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([named('app')])
    await metadata.repositories.changeManifestCount(repository, -1)
    expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([])
  })

  test('are listed in byte order, page by page', async () => {
    const metadata = await open()
    // Byte order, not the order of a language: a dash before a digit, a digit before a letter, a slash before both.
    const names = ['a', 'a-b', 'a.b', 'a/b', 'a0', 'a_b', 'ab', 'b', 'b--c', 'z9']
    for (const name of names.toReversed()) {
      const { repository } = await openShelf(metadata, 'acme', name)
      await metadata.repositories.changeManifestCount(repository, 1)
    }
    const { accountId } = await openShelf(metadata)

    const all = await metadata.repositories.list(accountId, undefined, 100)
    expect(all.map(String)).toEqual(names)
    expect(await metadata.repositories.list(accountId, 'a.b', 3)).toEqual(['a/b', 'a0', 'a_b'].map(named))
    expect(await metadata.repositories.list(accountId, 'a!', 2)).toEqual(['a-b', 'a.b'].map(named))
    expect(await metadata.repositories.list(accountId, 'z9', 10)).toEqual([])
  })

  describe('are listed within patterns', () => {
    test('that match, page by page', async () => {
      const metadata = await open()
      const accountId = await fill(metadata, ['a/b', 'a/c', 'a/d/e', 'ab', 'b/a', 'b/public', 'c'])
      const list = async (after: string | undefined, limit: number, ...patterns: string[]) =>
        (await metadata.repositories.list(accountId, after, limit, patterns.map(patterned))).map(String)

      expect(await list(undefined, 10, 'a/*')).toEqual(['a/b', 'a/c', 'a/d/e'])
      expect(await list('a/b', 10, 'a/*')).toEqual(['a/c', 'a/d/e'])
      expect(await list('a/b!', 1, 'a/*')).toEqual(['a/c'])
      expect(await list(undefined, 2, '*/public', 'c', 'a/c')).toEqual(['a/c', 'b/public'])
      expect(await list('b/public', 2, '*/public', 'c', 'a/c')).toEqual(['c'])
      expect(await list(undefined, 10, 'c', 'c', 'c*')).toEqual(['c'])
      expect(await list('zzz', 10, '*')).toEqual([])
    })

    test('none at all without a pattern, and all by a star', async () => {
      const metadata = await open()
      const accountId = await fill(metadata, ['0', 'a', 'z9'])

      expect(await metadata.repositories.list(accountId, undefined, 10, [])).toEqual([])
      expect(await metadata.repositories.list(accountId, undefined, 10, [patterned('*')])).toEqual(
        ['0', 'a', 'z9'].map(named),
      )
    })

    test('without those that hold no manifest, and without those of another account', async () => {
      const metadata = await open()
      const accountId = await fill(metadata, ['team/app'])
      await openShelf(metadata, 'acme', 'team/empty')
      await fill(metadata, ['team/theirs'], 'rival')

      expect(await metadata.repositories.list(accountId, undefined, 10, [patterned('team/*')])).toEqual([
        named('team/app'),
      ])
    })

    test('an underscore is a letter like any other, and so is a dot', async () => {
      const metadata = await open()
      const accountId = await fill(metadata, ['a-b', 'a.b', 'a/b', 'a0b', 'a_b', 'a__b', 'axb', 'a_c', 'axc'])
      const list = async (pattern: string) =>
        (await metadata.repositories.list(accountId, undefined, 99, [patterned(pattern)])).map(String)

      expect(await list('a_b')).toEqual(['a_b'])
      expect(await list('a_*')).toEqual(['a__b', 'a_b', 'a_c'])
      expect(await list('*_b')).toEqual(['a__b', 'a_b'])
      expect(await list('a.*')).toEqual(['a.b'])
    })

    test('a prefix does not match the names that sort just before and just behind it', async () => {
      const metadata = await open()
      const names = ['team', 'team-a', 'team.a', 'team/0', 'team/a', 'team/z9', 'team/zz/z', 'team0', 'team_a', 'teama']
      const accountId = await fill(metadata, ['tea/m', 'teal/z', ...names, 'tean/a'])
      const list = async (...patterns: string[]) =>
        (await metadata.repositories.list(accountId, undefined, 99, patterns.map(patterned))).map(String)

      expect(await list('team/*')).toEqual(['team/0', 'team/a', 'team/z9', 'team/zz/z'])
      expect(await list('team*')).toEqual(names)
      expect(await list('team')).toEqual(['team'])
      expect(await list('team/z*', 'team/a')).toEqual(['team/a', 'team/z9', 'team/zz/z'])
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
      await repositories.changeManifestCount(await repositories.ensure({ accountId, repository: named(name) }), 1)
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
