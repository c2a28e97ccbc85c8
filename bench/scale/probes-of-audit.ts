// Probes of the audit log and of the deletion of accounts.
import type { NewAuditEntry } from '../../src/ports/audit.ts'
import type { Asked, Probe } from './probe.ts'

const range = { limit: 100, lookAt: 2_000 }

const entryOf = ({ key }: Asked): NewAuditEntry => ({
  account: key.account,
  actor: 'user-1',
  credential: '0123456789ab',
  keyName: 'ci',
  address: '192.0.2.1',
  action: 'postUser',
  target: '/users',
  repository: undefined,
  outcome: 'done',
  reason: undefined,
  count: 1,
  happenedAt: Date.now(),
})

export const auditProbes: readonly Probe[] = [
  {
    name: 'audit.add',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.audit.add([entryOf(asked)])),
  },
  {
    name: 'audit.list and listEvents, one account',
    kind: 'request',
    act: ({ tables, key, watch }) =>
      watch(async () => {
        await tables.audit.list(key.account, {}, undefined, range)
        await tables.audit.listEvents(key.accountId, {}, undefined, range)
      }),
  },
  {
    name: 'audit.list and listEvents, all accounts',
    kind: 'operator',
    act: ({ tables, watch }) =>
      watch(async () => {
        await tables.audit.list(undefined, {}, undefined, range)
        await tables.audit.listEvents(undefined, {}, undefined, range)
      }),
  },
  {
    name: 'audit.removeOld',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.audit.removeOld(90 * 86_400_000, 1_000)),
  },
  {
    name: 'accountDeletions, one portion',
    kind: 'operator',
    async act({ tables, key, watch }) {
      await tables.accounts.suspend(key.account)
      const account = { id: key.accountId, name: key.account }
      await watch(async () => {
        await tables.accountDeletions.request(key.accountId)
        await tables.accountDeletions.findNext(0)
        await tables.accountDeletions.removeSome(account)
        await tables.accountDeletions.finish(account, Number.MAX_SAFE_INTEGER)
      })
    },
    runs: 5,
  },
]
