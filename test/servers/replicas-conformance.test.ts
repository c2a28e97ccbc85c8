// The OCI cases against two replicas behind an nginx, each request to the next of them: as many as against one server.
import { afterAll, describe, expect, test } from 'bun:test'
import { blobCases } from '../conformance/blob-cases.ts'
import { type Case, repositoryName } from '../conformance/case.ts'
import { manifestCases, sparseCases } from '../conformance/manifest-cases.ts'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import { nginx } from '../support/replicas/nginx-server.ts'
import { startBalancedReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { basic } from '../support/server/test-server.ts'

const need: Need = nginx.isMet ? sharedStoresNeed : nginx
const mounts = [
  { label: 'root', mount: '' },
  { label: 'prefix', mount: '/api/2023-12-28' },
]
const usualCases = [...blobCases, ...manifestCases]
const casesMax = (usualCases.length + sparseCases.length) * mounts.length
let passed = 0

afterAll(() => {
  if (need.isMet) console.log(`two replicas behind nginx: ${passed} of ${casesMax} cases passed`)
})

function testBehindNginx(cases: readonly Case[], settings: Readonly<Record<string, string>> = {}): void {
  const berth = useRunning(() => startBalancedReplicas(settings), need)
  for (const { label, mount } of mounts) {
    for (const one of cases) {
      testNeeding(need, `at ${mount}/v2/ ${one.title} [${one.official}]`, async () => {
        const { url, apiKey } = berth
        const name = repositoryName(label, one)
        await one.check({ url, mount, authorization: basic('apikey', apiKey), name })
        passed += 1
      })
    }
  }
  if (!need.isMet) return
  test('both replicas had their share', () => {
    const shares = berth.replicas.all.map((replica) => replica.output().split('"msg":"request"').length - 1)
    console.log(`requests to each of the two: ${shares.join(' and ')}`)
    expect(Math.min(...shares)).toBeGreaterThan(cases.length)
  })
}

describe('two replicas behind nginx', () => testBehindNginx(usualCases))

describe('two replicas behind nginx that take manifests before their content', () =>
  testBehindNginx(sparseCases, { BERTH_MANIFESTS__MISSING_CONTENT: 'allow' }))
