import type { Command } from 'commander'
import { AuditRecorder } from '../registry/audit.ts'

let current: Command | undefined

/** Called before the action of a command. A process runs one command. */
export function noteCommand(command: Command): void {
  current = command
}

interface Place {
  readonly metadata: ConstructorParameters<typeof AuditRecorder>[0]['metadata']
  readonly config: { readonly auditKeepMs: number }
}

/**
 * Records the command in the audit log, with its arguments. The options are not recorded. Secrets are never arguments:
 * commands read them from standard input.
 */
export async function recordCommand({ metadata, config }: Place): Promise<void> {
  if (current === undefined) return
  const settings = { keepMs: config.auditKeepMs, hasUsers: false }
  await new AuditRecorder({ metadata }, { now: () => Date.now() }, settings).record({
    account: undefined,
    actor: 'operator',
    credential: undefined,
    keyName: undefined,
    address: undefined,
    action: nameOf(current),
    target: current.args.join(' ') || undefined,
    repository: undefined,
    outcome: 'done',
    reason: undefined,
  })
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
