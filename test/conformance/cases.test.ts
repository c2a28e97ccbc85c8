// Every case at both mounts, with credentials: at the root, as docker and its like speak, and under the prefix of spec.md.
import { expect, test } from 'bun:test'
import { useRunning } from '../support/basics/running.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { basic } from '../support/server/test-server.ts'
import { blobCases } from './blob-cases.ts'
import { type Case, repositoryName } from './case.ts'
import { manifestCases, sparseCases } from './manifest-cases.ts'

const usual = useRunning(() => startBerth())
const sparse = useRunning(() => startBerth({ settings: { BERTH_MANIFESTS__MISSING_CONTENT: 'allow' } }))
const mounts = ['', '/api/2023-12-28']

function testAtBothMounts(berth: typeof usual, cases: readonly Case[]): void {
  for (const [at, mount] of mounts.entries()) {
    for (const one of cases) {
      test(`a registry at ${mount}/v2/ ${one.title} [${one.official}]`, async () => {
        const name = repositoryName(`mount-${at}`, one)
        await one.check({ url: berth.url, mount, name, authorization: basic('apikey', berth.apiKey) })
      })
    }
  }
}

testAtBothMounts(usual, [...blobCases, ...manifestCases])
testAtBothMounts(sparse, sparseCases)

test('all cases of the official suite are here: 8 single ones, 26 of blobs by each algorithm, and 20 data sets', () => {
  const all = [...blobCases, ...manifestCases, ...sparseCases]
  expect(new Set(all.map(({ official }) => official)).size).toBe(8 + 2 * 26 + 20)
  expect(new Set(all.map((one) => repositoryName('', one))).size).toBe(all.length)
})
