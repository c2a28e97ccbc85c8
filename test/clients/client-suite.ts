// The frame around each client's tests: its tools are there or their absence is told, its results go into the matrix.
import { describe, test } from 'bun:test'
import { missingTools } from '../support/command.ts'
import type { ClientMatrix, Verb } from './client-matrix.ts'

export interface ClientSpec {
  readonly client: string
  readonly tools: readonly string[]
  readonly verbs: readonly Verb[]
}

/** Declares a test that proves one or more verbs of the client. */
export type Prove = (verbs: Verb | readonly Verb[], sentence: string, body: () => Promise<void>) => void

const testTimeoutMs = 240_000
/** For what starts or ends a daemon. */
export const hookTimeoutMs = 120_000

const isRequired = process.env['CI'] !== undefined || (process.env['REQUIRE'] ?? '').includes('clients')

export function clientSuite(matrix: ClientMatrix, spec: ClientSpec, declare: (prove: Prove) => void): void {
  const { client } = spec
  matrix.addRow(client, spec.verbs)
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
          for (const verb of proved) matrix.record(client, verb, passed)
        }
      }
      test(sentence, runAndRecord, testTimeoutMs)
    })
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
