// The frame around each client's tests: its tools are there or their absence is told, its results go into the matrix.
import { beforeAll, describe, expect, test } from 'bun:test'
import { missingTools } from '../support/basics/command.ts'
import type { ClientMatrix, Verb } from './client-matrix.ts'
import { countIssuedTokens, type IssuedTokens } from './issued-tokens.ts'
import type { BerthOf, Challenge } from './servers.ts'

export interface ClientSpec {
  readonly client: string
  readonly tools: readonly string[]
  readonly verbs: readonly Verb[]
  readonly challenge: Challenge
  /** The server that the client's proofs talk to. */
  readonly berth: BerthOf
}

/** Declares a test that proves one or more verbs of the client. */
export type Prove = (verbs: Verb | readonly Verb[], sentence: string, body: () => Promise<void>) => void

const testTimeoutMs = 240_000
/** For what starts or ends a daemon. */
export const hookTimeoutMs = 120_000

const isRequired = process.env['CI'] !== undefined || (process.env['REQUIRE'] ?? '').includes('clients')

export function clientSuite(matrix: ClientMatrix, spec: ClientSpec, declare: (prove: Prove) => void): void {
  const { client, challenge } = spec
  matrix.addRow(client, challenge, spec.verbs)
  describe(client, () => {
    if (!hasTools(spec)) return
    declare((verbs, sentence, body) => {
      const proved = typeof verbs === 'string' ? [verbs] : verbs
      const runAndRecord = async () => {
        let passed = false
        try {
          await body()
          passed = true
        } finally {
          for (const verb of proved) matrix.record(client, challenge, verb, passed)
        }
      }
      test(sentence, runAndRecord, testTimeoutMs)
    })
    proveChallenge(matrix, spec)
  })
}

/** The suite's last word: that all of the above was done in the way that the challenge asks for. */
function proveChallenge(matrix: ClientMatrix, { client, challenge, berth }: ClientSpec): void {
  let before: IssuedTokens
  // Registered behind the suite's own, so that its server is there.
  beforeAll(() => {
    before = countIssuedTokens(berth())
  })
  const sentence = challenge === 'bearer' ? 'all this with tokens that it fetched' : 'all this without any token'
  test(sentence, () => {
    const after = countIssuedTokens(berth())
    const issued = { GET: after.get - before.get, POST: after.post - before.post }
    const methods = Object.entries(issued).flatMap(([method, count]) => (count > 0 ? [method] : []))
    matrix.recordTokens(client, challenge, methods.join(', ') || '-')
    expect(methods.length > 0).toBe(challenge === 'bearer')
  })
}

/** A missing tool is one loud skip here and a failure in CI. */
export function hasTools({ client, tools }: Pick<ClientSpec, 'client' | 'tools'>): boolean {
  const missing = missingTools(tools)
  if (missing.length === 0) return true
  const reason = `${client} needs ${missing.join(', ')}, which this machine does not have`
  if (isRequired) {
    test(reason, () => {
      throw new Error(reason)
    })
  } else {
    console.warn(`SKIPPED: ${reason}`)
    test.skip(reason, () => {})
  }
  return false
}
