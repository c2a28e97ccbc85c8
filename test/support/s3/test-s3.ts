// Which S3 server the tests speak to: the stub in this process, or a real one where TEST_S3 says so.
import { randomUUID } from 'node:crypto'
import type { Need } from '../basics/needs.ts'
import { canStartCeph, startCeph } from './ceph-server.ts'
import { canStartMoto, startMoto } from './moto-server.ts'
import type { S3Server } from './s3-server.ts'
import { startS3Stub } from './s3-stub.ts'

interface Choice {
  readonly need: () => Need
  readonly start: () => S3Server | Promise<S3Server>
}

const choices: Readonly<Record<string, Choice>> = {
  stub: { need: () => ({ isMet: true, reason: '' }), start: () => startS3Stub() },
  ceph: { need: canStartCeph, start: startCeph },
  moto: { need: canStartMoto, start: startMoto },
}

function chosen(): Choice {
  const name = process.env['TEST_S3'] ?? 'stub'
  const choice = choices[name]
  if (choice === undefined) throw new Error(`TEST_S3 must be ${Object.keys(choices).join(', ')}, and not ${name}`)
  return choice
}

/** What the server of `sharedS3` needs of this machine. */
export function testS3Need(): Need {
  return chosen().need()
}

let running: Promise<S3Server> | undefined

/** One for the whole run: it ends with the process. */
export function sharedS3(): Promise<S3Server> {
  running ??= Promise.resolve(chosen().start())
  return running
}

/** No other test uses names below it: tests share the bucket. */
export function freshPrefix(): string {
  return `${randomUUID()}/`
}
