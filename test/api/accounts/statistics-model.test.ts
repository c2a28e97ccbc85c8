// Statistics and states of accounts are right after every kind of change: random steps of two accounts on the registry and
// on a small model, from accounts that were never enabled.
import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { api } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy, type WiredRegistry, wireRegistry } from '../../support/api/wired-registry.ts'
import { seed } from '../../support/basics/fuzzing.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { around } from '../../support/clocks/gates.ts'
import { auditStores } from '../../support/stores/store-audit.ts'
import { AccountModel, operations, type Step, takeStep } from './statistics-model.ts'

const temporaryFolder = useTemporaryFolders('statistics')
const registries = {
  on: await wireRegistry(temporaryFolder()),
  off: await wireRegistry(temporaryFolder(), { settings: { BERTH_ACCOUNTS__AUTO_ENABLE: 'false' } }),
}
/** It does not count images. */
const forgetful = await wireRegistry(temporaryFolder(), {
  wrap: (metadata) => around(metadata, 'repositories', 'markAsImage', async () => undefined),
})
afterAll(() => Promise.all([registries.on, registries.off, forgetful].map((one) => one.stop())))

let accounts = 0

async function joinTwo(registry: WiredRegistry): Promise<readonly WiredRegistry[]> {
  accounts += 1
  const keys = [`one-${accounts}`, `other-${accounts}`].map((name) =>
    addPerson(registry, { name, roles: ['admin'], account: name }),
  )
  return (await Promise.all(keys)).map((key) => askedBy(registry, key))
}

const imageCount = async (asker: WiredRegistry) =>
  (await asker.ask('GET', `${api}/stats`)).json<{ imageCount: number }>().imageCount

const seenOperations = new Map<string, number>()

/** After each step: its statuses and both accounts' numbers, as they are and as they should be. */
async function walk(
  registry: WiredRegistry,
  steps: readonly Step[],
  autoEnable: 'on' | 'off',
): Promise<[unknown[], unknown[]]> {
  const models = [new AccountModel(autoEnable === 'on'), new AccountModel(autoEnable === 'on')]
  const askers = await joinTwo(registry)
  const [seen, wanted]: [unknown[], unknown[]] = [[], []]
  for (const step of steps) {
    const [asker, model] = [askers[step.who], models[step.who]]
    if (asker === undefined || model === undefined) throw new Error('there are two accounts')
    const statuses = await takeStep(asker, step)
    for (const status of statuses) {
      const what = `${step.operation}: ${status}`
      seenOperations.set(what, (seenOperations.get(what) ?? 0) + 1)
    }
    wanted.push([step.operation, model.take(step), ...models.map((one) => one.imageCount)])
    seen.push([step.operation, statuses, ...(await Promise.all(askers.map(imageCount)))])
  }
  return [seen, wanted]
}

const step: fc.Arbitrary<Step> = fc.record({
  operation: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...operations) },
    {
      weight: 5,
      arbitrary: fc.constantFrom('push a tag', 'push an index', 'delete a manifest', 'delete an index', 'enable'),
    },
  ),
  who: fc.nat(1),
  repository: fc.nat(1),
  image: fc.nat(1),
} as const)

/** Each operation where it is done, and where it is refused; enabling and disabling are repeated, and the last counts. */
const tour = (
  [
    'enable',
    'push an index',
    'push a tag',
    'push an index',
    'delete a manifest',
    'delete a tag',
    'delete a tag',
    'delete an index',
    'delete an index',
    'push two at once',
    'delete a manifest',
    'delete a manifest',
    'push a digest',
    'disable',
    'disable',
    'look',
    'enable',
    'enable',
    'look',
    'collect',
  ] as const
).map((operation) => ({ operation, who: 0, repository: 0, image: 0 }))

describe('the statistics', () => {
  test.each(['on', 'off'] as const)(
    'of two accounts are those of the model, with accounts.auto_enable %s',
    async (setting) => {
      const registry = registries[setting]
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
          const [seen, wanted] = await walk(registry, steps, setting)

          expect(seen).toEqual(wanted)
        }),
        { seed, numRuns: 35, examples: [[tour]] },
      )
      console.log(
        `statistics: ${[...seenOperations.values()].reduce((sum, one) => sum + one, 0)} answers of ${seenOperations.size} kinds`,
      )
      expect(await auditStores(registry.dataDir)).toEqual([])
      const seen = [
        'an index: 201',
        'an index: 400',
        'a manifest: 202',
        'a manifest: 404',
        'a manifest: 405',
        'a tag: 404',
        'look: 403',
      ]
      expect(seen.filter((what) => ![...seenOperations.keys()].some((one) => one.endsWith(what)))).toEqual([])
    },
    50_000,
  )

  test('control: a registry that does not count is noticed', async () => {
    const [seen, wanted] = await walk(forgetful, tour, 'on')

    expect([seen[2], wanted[2]]).toEqual([
      ['push a tag', [201], 0, 0],
      ['push a tag', [201], 1, 0],
    ])
    expect((await auditStores(forgetful.dataDir)).length).toBeGreaterThan(0)
  })

  test('control: a model with the other setting does not fit', async () => {
    const [seen, wanted] = await walk(registries.on, [{ operation: 'look', who: 0, repository: 0, image: 0 }], 'off')

    expect([seen[0], wanted[0]]).toEqual([
      ['look', [200], 0, 0],
      ['look', [403], 0, 0],
    ])
  })
})
