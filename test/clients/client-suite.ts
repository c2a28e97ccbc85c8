// The frame around each client's tests: its tools are there or their absence is told, and the client authenticates in the
// way that the challenge asks for.
import { beforeAll, describe, expect, test } from 'bun:test'
import { missingTools } from '../support/basics/command.ts'
import type { BerthProcess } from '../support/server/berth-process.ts'
import type { BerthOf, Challenge } from './servers.ts'

export interface ClientSpec {
  readonly client: string
  readonly tools: readonly string[]
  readonly challenge: Challenge
  /** The server that the client's proofs talk to. */
  readonly berth: BerthOf
}

const testTimeoutMs = 240_000
/** For what starts or ends a daemon. */
export const hookTimeoutMs = 120_000

const isRequired = process.env['CI'] !== undefined || (process.env['REQUIRE'] ?? '').includes('clients')

export function prove(sentence: string, body: () => Promise<void>): void {
  test(sentence, body, testTimeoutMs)
}

export function describeClient(spec: ClientSpec, declare: () => void): void {
  describe(spec.client, () => {
    if (!hasTools(spec)) return
    declare()
    proveChallenge(spec)
  })
}

/** The last test of each client: all tests before were done in the way that the challenge asks for. */
function proveChallenge({ challenge, berth }: ClientSpec): void {
  let before = 0
  // Registered after the client's own hooks, so that its server has started.
  beforeAll(() => {
    before = countIssuedTokens(berth())
  })
  const sentence = challenge === 'bearer' ? 'all this with tokens that it fetched' : 'all this without any token'
  test(sentence, () => {
    expect(countIssuedTokens(berth()) > before).toBe(challenge === 'bearer')
  })
}

/** How many tokens a server has issued: read from its log, which a client cannot influence. */
function countIssuedTokens(berth: Pick<BerthProcess, 'output'>): number {
  const issued = /"route":"(?:get|post)ScopedToken"/i
  return berth
    .output()
    .split('\n')
    .filter((line) => issued.test(line) && line.includes('"status":200')).length
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
