// The one place that decides: every right, kind of caller and kind of grant.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { allRights } from '../../../src/identity/rights.ts'
import { RegistryRefusal, Unavailable } from '../../../src/oci/errors.ts'
import type { RepositoryName } from '../../../src/oci/names.ts'
import { matchesPattern, parseRepositoryPattern, type RepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { Grant, Principal, Right } from '../../../src/ports/identity.ts'
import { checkAllowed, isAllowed, isGrantable, listablePatterns } from '../../../src/registry/access.ts'
import { check } from '../../support/basics/fuzzing.ts'

const named = (text: string) => text as RepositoryName
const patterned = (text: string): RepositoryPattern => parseRepositoryPattern(text) ?? expect.unreachable(text)
const grant = (rights: readonly Right[], ...repositories: readonly string[]): Grant =>
  repositories.length === 0
    ? { rights: new Set(rights) }
    : { rights: new Set(rights), repositories: repositories.map(patterned) }

function principal(grants: readonly Grant[], rest: Partial<Principal> = {}): Principal {
  return { account: 'acme', subject: 'alice', roles: ['admin'], grants, fingerprint: '', ...rest }
}

/** How the check ends, in a word. */
function verdictOf(who: Principal, right: Right, repository?: string): string {
  try {
    checkAllowed(who, right, repository === undefined ? undefined : named(repository))
    return 'allowed'
  } catch (error) {
    if (error instanceof RegistryRefusal) return error.refusal
    return error instanceof Unavailable ? 'unavailable' : String(error)
  }
}

describe('deny by default', () => {
  const empty: readonly (readonly [string, Principal])[] = [
    ['no grant', principal([])],
    ['a grant of nothing', principal([grant([])])],
    ['a grant for no repository', principal([{ rights: new Set(allRights), repositories: [] }])],
  ]

  test.each(empty)('%s opens no repository, and gives no right over the account, whatever the roles say', (_, who) => {
    for (const right of allRights) expect(verdictOf(who, right, 'team/app')).toBe('denied')
    for (const right of ['push', 'delete', 'operate'] as const) expect(verdictOf(who, right)).toBe('denied')
  })
})

describe('a grant', () => {
  test.each(allRights.map((right) => [right]))('of %s is for that right alone', (right) => {
    const who = principal([grant([right])])
    for (const wanted of allRights) {
      expect([wanted, verdictOf(who, wanted, 'app'), verdictOf(who, wanted)]).toEqual(
        wanted === right ? [wanted, 'allowed', 'allowed'] : [wanted, 'denied', 'denied'],
      )
    }
  })

  test('for some repositories is no grant for the account: no operating, but the list may be asked for', () => {
    const who = principal([grant(allRights, '*')])

    expect(allRights.map((right) => verdictOf(who, right))).toEqual(['allowed', 'denied', 'denied', 'denied'])
    expect(allRights.map((right) => verdictOf(who, right, 'any/app'))).toEqual(allRights.map(() => 'allowed'))
  })

  test('does not lend its rights to the repositories of another', () => {
    const who = principal([grant(['pull'], 'lib/*'), grant(['push'], 'team/*'), grant(['delete'])])

    expect(verdictOf(who, 'pull', 'lib/a')).toBe('allowed')
    expect(verdictOf(who, 'push', 'team/a')).toBe('allowed')
    expect(verdictOf(who, 'pull', 'team/a')).toBe('denied')
    expect(verdictOf(who, 'push', 'lib/a')).toBe('denied')
    expect(verdictOf(who, 'delete', 'anywhere')).toBe('allowed')
  })
})

describe('a refusal', () => {
  test.each([
    [undefined, 'denied'],
    ['anonymous', 'unauthenticated'],
    ['scoped', 'scope-insufficient'],
  ] as const)('of a principal that is %s is %s', (kind, refusal) => {
    const who = principal([grant(['pull'], 'open/*')], kind === undefined ? {} : { kind })
    for (const right of allRights) expect(verdictOf(who, right, 'closed/app')).toBe(refusal)
  })

  test('names the right and nothing of the repository', () => {
    try {
      checkAllowed(principal([]), 'push', named('secret/app'))
      expect.unreachable()
    } catch (error) {
      expect((error as RegistryRefusal).details).toEqual([{ right: 'push' }])
    }
  })
})

describe('a principal whose identity could not be confirmed', () => {
  const who = principal([grant(allRights)], { isUnconfirmed: true })

  test('pulls and pushes, and is told to come back for what cannot be taken back', () => {
    expect(allRights.map((right) => verdictOf(who, right, 'app'))).toEqual([
      'allowed',
      'allowed',
      'unavailable',
      'unavailable',
    ])
    expect(allRights.map((right) => isGrantable(who, right, named('app')))).toEqual([true, true, false, false])
  })

  test('is denied what he never had', () => {
    expect(verdictOf(principal([grant(['pull'])], { isUnconfirmed: true }), 'delete', 'app')).toBe('denied')
  })
})

describe('the list', () => {
  const teams = ['team/*', '*/public'].map(patterned)

  test.each([
    ['everything to who may pull everywhere', principal([grant(['pull'])]), undefined],
    [
      'everything, whatever another grant is limited to',
      principal([grant(['pull'], 'a/*'), grant(['pull'])]),
      undefined,
    ],
    [
      'what any grant lets him pull',
      principal([grant(['pull'], 'team/*'), grant(['pull', 'push'], '*/public')]),
      teams,
    ],
    ['nothing of what he may only push', principal([grant(['push'], 'team/*'), grant(['delete'])]), []],
    ['nothing to who may nothing', principal([]), []],
    ['all, where a token says so', principal([grant(['pull'], 'a/*')], { catalog: 'all' }), undefined],
    ['nothing, where a token is not for it', principal([grant(['pull'])], { catalog: 'none' }), []],
    ['what a token names', principal([grant(['pull'], 'a/*')], { catalog: teams }), teams],
  ])('shows %s', (_, who, shown) => {
    expect(listablePatterns(who)).toEqual(shown)
  })

  test('is closed to a token that is not for it, which still pulls', () => {
    const who = principal([grant(['pull'])], { kind: 'scoped', catalog: 'none' })

    expect([verdictOf(who, 'pull'), verdictOf(who, 'pull', 'app')]).toEqual(['scope-insufficient', 'allowed'])
  })

  test('shows a repository exactly if it may be pulled', () => {
    const texts = ['team/*', '*/public', 'a*', '*', 'lib/app', 'team/app'] as const
    const grants = fc.array(
      fc.record(
        {
          rights: fc.subarray([...allRights]).map((rights) => new Set(rights)),
          repositories: fc.subarray([...texts]).map((some) => some.map(patterned)),
        },
        { requiredKeys: ['rights'] },
      ),
      { maxLength: 3 },
    )
    const names = fc.constantFrom('team/app', 'team/public', 'lib/app', 'lib/public', 'a', 'z', 'public').map(named)
    check(grants, names, (some, name) => {
      const who = principal(some)
      const shown = listablePatterns(who)
      const isShown = shown === undefined || shown.some((pattern) => matchesPattern(pattern, name))

      expect(isShown).toBe(isAllowed(who, 'pull', name))
      if (isShown) expect(isAllowed(who, 'pull')).toBe(true)
    })
  })
})
