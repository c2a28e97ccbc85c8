// The checks, checked: a sound registry passes them all, and one that gets a single thing wrong does not.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { allCases } from './all-cases.ts'
import { type Case, repositoryName } from './case.ts'
import { basic, type Repository } from './client.ts'
import { contentFaults } from './content-faults.ts'
import { ConformanceFailure } from './expectations.ts'
import type { Fault } from './fault.ts'
import { officialCases } from './official-cases.ts'
import { SoundRegistry } from './sound-registry.ts'
import { wireFaults } from './wire-faults.ts'

type Answering = (request: Request) => Response | Promise<Response>

/** The official cases that nothing is there; having nothing is right for them. */
const officialOfAbsence = /get-missing|missing-manifest|invalid-digest-format\/manifest-get|empty\/tag list/

const authorization = basic('control', 'secret')
let answering: Answering = () => new Response(null, { status: 500 })
let server: Bun.Server<undefined>

beforeAll(() => {
  server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => answering(request) })
})
afterAll(async () => {
  await server.stop(true)
})

async function run(one: Case): Promise<void> {
  const repository: Repository = {
    origin: server.url.origin,
    mount: '',
    authorization,
    name: repositoryName('control', one),
  }
  await one.check(repository)
}

/** Anything but a ConformanceFailure would be a mistake of the checks and goes on to the test. */
async function problemOf(one: Case): Promise<string | undefined> {
  try {
    await run(one)
    return undefined
  } catch (error) {
    if (error instanceof ConformanceFailure) return error.message
    throw error
  }
}

function casesNamed(official: string): readonly Case[] {
  const found = allCases.filter((one) => one.official === official)
  if (found.length === 0) throw new Error(`there is no case ${official}`)
  return found
}

function spoiled({ spoil }: Fault): Answering {
  const registry = new SoundRegistry(authorization)
  return async (request) => {
    const answer = await registry.answer(request)
    return (await spoil(request, answer)) ?? answer
  }
}

test('every case of the official suite is there, and none that it does not have', () => {
  expect([...new Set(allCases.map(({ official }) => official))].sort()).toEqual([...officialCases].sort())
})

test('each case has a repository of its own', () => {
  const names = allCases.map((one) => repositoryName('control', one))
  expect(names.filter((name, place) => names.indexOf(name) !== place)).toEqual([])
})

describe('a sound registry', () => {
  for (const one of allCases) {
    test(`passes: ${one.title} [${one.official}]`, async () => {
      const registry = new SoundRegistry(authorization)
      answering = (request) => registry.answer(request)
      await run(one)
    })
  }
})

test('a registry that says yes to everything passes no case but the check itself', async () => {
  answering = () => Response.json({})
  const passed: string[] = []
  for (const one of allCases) if ((await problemOf(one)) === undefined) passed.push(one.title)
  expect(passed).toEqual(['says yes to those whom it knows'])
})

test('a registry that has nothing passes no case that pushes', async () => {
  answering = () => Response.json({ errors: [{ code: 'NAME_UNKNOWN' }] }, { status: 404 })
  for (const one of allCases) {
    const isOfAbsence = officialOfAbsence.test(one.official)
    if (!isOfAbsence) expect(await problemOf(one)).toBeDefined()
  }
})

for (const fault of [...wireFaults, ...contentFaults]) {
  describe(`a registry that ${fault.what}`, () => {
    for (const official of fault.noticedBy) {
      test(`does not pass [${official}]`, async () => {
        answering = spoiled(fault)
        const problems = await Promise.all(casesNamed(official).map(problemOf))
        expect(problems.filter((problem) => problem !== undefined).join('\n')).toMatch(fault.reason)
      })
    }
  })
}
