// The OCI cases against two replicas behind an nginx, each request to the next of them: as many as against one server.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { allCases } from '../conformance/all-cases.ts'
import { type Case, repositoryName } from '../conformance/case.ts'
import { basic } from '../conformance/client.ts'
import type { BerthProcess } from '../support/berth-process.ts'
import { type Need, testNeeding } from '../support/needs.ts'
import { nginx } from '../support/nginx-server.ts'
import { startBalancedReplicas } from '../support/replicas.ts'
import { sharedStoresNeed } from '../support/shared-stores.ts'

const need: Need = nginx.isMet ? sharedStoresNeed : nginx
const mounts = [
  { label: 'root', mount: '' },
  { label: 'prefix', mount: '/api/2023-12-28' },
]
let berth: BerthProcess
let passed = 0

beforeAll(async () => {
  if (need.isMet) berth = await startBalancedReplicas()
}, 60_000)
afterAll(async () => {
  if (!need.isMet) return
  const requests = berth.output().split('"msg":"request"').length - 1
  console.log(`two replicas behind nginx: ${passed} of ${allCases.length * mounts.length} cases, ${requests} requests`)
  await berth.stop()
}, 60_000)

async function check(one: Case, label: string, mount: string): Promise<void> {
  const authorization = basic('apikey', berth.apiKey)
  await one.check({ origin: berth.url, mount, authorization, name: repositoryName(label, one) })
  passed += 1
}

for (const { label, mount } of mounts) {
  describe(`two replicas behind nginx, at ${mount}/v2/`, () => {
    for (const one of allCases) {
      testNeeding(need, `${one.title} [${one.official}]`, () => check(one, label, mount))
    }
  })
}

if (need.isMet) {
  test('both replicas had their share of it', () => {
    const ports = new Set([...berth.output().matchAll(/"url":"http:\/\/127\.0\.0\.1:(\d+)"/g)].map(([, port]) => port))
    expect(ports.size).toBe(2)
  })
}
