// The checks, checked: a registry that gets a single thing wrong does not pass.
import { describe, expect, test } from 'bun:test'
import { useRunning } from '../support/basics/running.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { basic, startTestServer } from '../support/server/test-server.ts'
import { blobCases } from './blob-cases.ts'
import { type Case, type Repository, repositoryName } from './case.ts'
import { faults } from './faults.ts'
import { manifestCases, sparseCases } from './manifest-cases.ts'

const server = useRunning(() => startTestServer({ BERTH_MANIFESTS__MISSING_CONTENT: 'allow' }))
const cases = [...blobCases, ...manifestCases, ...sparseCases]
let runs = 0

/** The message of the failed check. Any other error is a bug of the checks, and goes on to the test. */
async function problemOf(one: Case, spoil: NonNullable<Repository['spoil']>): Promise<string> {
  runs += 1
  const name = repositoryName(`run-${runs}`, one)
  const authorization = basic('apikey', testApiKey)
  try {
    await one.check({ url: server.url, mount: '', name, authorization, spoil })
    return ''
  } catch (error) {
    const message = Error.isError(error) ? Bun.stripANSI(error.message) : ''
    if (message.startsWith('expect(')) return message
    throw error
  }
}

for (const { what, spoil, noticedBy, reason } of faults) {
  describe(`a registry that ${what}`, () => {
    test.each(noticedBy)('does not pass [%s]', async (official) => {
      const named = cases.filter((one) => one.official === official)
      const problems = await Promise.all(named.map((one) => problemOf(one, spoil)))
      expect(problems.join('\n')).toContain(reason)
    })
  })
}

test('a registry that gives one answer of a case another status does not pass the case', async () => {
  const passed: string[] = []
  for (const [number, one] of cases.entries()) {
    let answers = 0
    const count = () => {
      answers += 1
      return undefined
    }
    expect(await problemOf(one, count)).toBe('')
    const at = number % answers
    let seen = 0
    const spoil = () => (seen++ === at ? { status: 299 } : undefined)
    if ((await problemOf(one, spoil)) === '') passed.push(`${one.official}: answer ${at + 1} of ${answers}`)
  }
  expect(passed).toEqual([])
})

test('a registry that says yes to everything passes no case but the check itself', async () => {
  const passed: string[] = []
  for (const one of cases) {
    const problem = await problemOf(one, () => ({
      status: 200,
      json: {},
      headers: { 'content-type': 'application/json' },
    }))
    if (problem === '') passed.push(one.title)
  }
  expect(passed).toEqual(['accepts known callers'])
})
