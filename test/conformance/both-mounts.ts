// Every case twice, with credentials: at the root, as docker and its like speak, and under the contract's prefix.
import { afterAll, beforeAll, describe, test } from 'bun:test'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { type Case, repositoryName } from './case.ts'
import { basic } from './client.ts'

const mounts = [
  { label: 'root', mount: '' },
  { label: 'prefix', mount: '/api/2023-12-28' },
]

export function testOnBothMounts(cases: readonly Case[], settings: Readonly<Record<string, string>> = {}): void {
  let berth: BerthProcess | undefined
  beforeAll(async () => {
    berth = await startBerth({ settings })
  })
  afterAll(async () => {
    await berth?.stop()
  })
  for (const { label, mount } of mounts) {
    describe(`a registry at ${mount}/v2/`, () => {
      for (const one of cases) {
        test(`${one.title} [${one.official}]`, async () => {
          if (berth === undefined) throw new Error('Berth has not started')
          const authorization = basic('apikey', berth.apiKey)
          await one.check({ origin: berth.url, mount, authorization, name: repositoryName(label, one) })
        })
      }
    })
  }
}
