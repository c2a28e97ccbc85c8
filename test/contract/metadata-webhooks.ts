// The contract of webhooks and their deliveries, through the use cases that deliver.
import { expect, test } from 'bun:test'
import { systemClock } from '../../src/adapters/clock-system/system-clock.ts'
import { TextSealer } from '../../src/lib/text-sealer.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import type { SendResult, WebhookMessage } from '../../src/ports/webhook-sender.ts'
import type { DeliveryState, Webhook, WebhookSettings } from '../../src/ports/webhooks.ts'
import { removeOldEvents } from '../../src/registry/events.ts'
import { passEventsOn, WebhookDeliverer } from '../../src/registry/webhook-delivery.ts'
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  retryDelivery,
  updateWebhook,
} from '../../src/registry/webhooks.ts'
import { openShelf, passTime, patterned, type Shelf } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

type Send = (message: WebhookMessage) => Promise<SendResult> | SendResult

const settings: WebhookSettings = {
  url: 'https://ci.example.com/hook',
  format: 'cloudevents',
  types: [],
  repositories: [],
  isEnabled: true,
}
const senderOf = (send: Send) => ({
  findFault: () => undefined,
  send: async (message: WebhookMessage) => send(message),
})
const parts = { sender: senderOf(() => ({ failure: 'not sent' })), perAccountMax: 3 }
const succeed: SendResult = { status: 204, retryAfterMs: undefined }
const fail: SendResult = { status: 500, retryAfterMs: undefined }

async function addEvents(
  { metadata, accountId }: Shelf,
  repositories: readonly string[],
  count: number,
): Promise<void> {
  const rows = await Promise.all(repositories.map((name) => openShelf(metadata, 'acme', name)))
  for (let at = 0; at < count; at += 1) {
    const repositoryId = rows[at % rows.length]?.repository.id
    await metadata.transaction(({ events }) =>
      events.add(accountId, { type: 'tag.created', repositoryId, actor: { subject: 'ann' }, data: { at } }),
    )
  }
}

function delivererOf(metadata: MetadataStore, send: Send, giveUpMs = 60_000): WebhookDeliverer {
  const settings = { origin: 'https://registry.example.com', giveUpMs, timeoutMs: 10_000, firstDelayMs: 4 }
  const sealer = new TextSealer('a secret')
  return new WebhookDeliverer({ metadata, sender: senderOf(send), clock: systemClock, sealer, settings })
}

async function stateOf({ metadata }: Shelf, webhook: Webhook, state?: DeliveryState) {
  const found = await metadata.webhookDeliveries.list(webhook, state, undefined, 1000)
  return found.toReversed().map((delivery) => [delivery.event.data?.['at'], delivery.state, delivery.attempts])
}

async function runUntil(deliverers: readonly WebhookDeliverer[], isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) {
    await Promise.all(deliverers.map((deliverer) => deliverer.start()))
    await Bun.sleep(2)
  }
  await Promise.all(deliverers.map((deliverer) => deliverer.settle()))
}

export function webhooksContract(open: OpenMetadataStore): void {
  test('are of one account, listed by name, limited in number, and can be changed and deleted', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'zeta')
    const { metadata, accountId } = shelf
    const needs = { metadata, webhooks: parts }
    const limited = { ...settings, types: ['tag.moved'], repositories: [patterned('team/*')] } as const
    const made = await createWebhook(needs, accountId, 'b', limited)
    for (const name of ['a', 'c']) await createWebhook(needs, accountId, name, settings)
    await createWebhook(needs, other.accountId, 'b', settings)

    expect(made).toMatchObject({ ...limited, name: 'b', accountId, since: 0, disabledBecause: undefined })
    const again = createWebhook(needs, accountId, 'a', settings)
    expect(await again.catch(String)).toContain('already has a webhook')
    expect(await createWebhook(needs, accountId, 'd', settings).catch(String)).toContain('limit of webhooks')
    const { items, hasMore } = await listWebhooks(needs, accountId, { after: 'a', limit: 1 })
    expect([items.map(({ name }) => name), hasMore]).toEqual([['b'], true])

    const changed = await updateWebhook(needs, made, { ...settings, isEnabled: false }, { rotatesSecret: false })
    expect([changed.isEnabled, changed.types, changed.secret === made.secret]).toEqual([false, [], true])
    const rotated = await updateWebhook(needs, made, settings, { rotatesSecret: true })
    expect(rotated.secret).toMatch(/^whsec_/)
    expect(rotated.secret).not.toBe(made.secret)
    await deleteWebhook({ metadata }, made)
    expect(await metadata.webhooks.find(accountId, 'b')).toBeUndefined()
    expect((await metadata.webhooks.find(other.accountId, 'b'))?.accountId).toBe(other.accountId)
  })

  test('get each event that they want once, and none from before they were created', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'zeta')
    const { metadata, accountId } = shelf
    const needs = { metadata, webhooks: parts }
    await addEvents(shelf, ['team/app'], 1)
    await passEventsOn({ metadata })
    const all = await createWebhook(needs, accountId, 'all', settings)
    const some = await createWebhook(needs, accountId, 'some', { ...settings, repositories: [patterned('team/*')] })
    const none = await createWebhook(needs, other.accountId, 'none', settings)
    await addEvents(shelf, ['team/app', 'app'], 4)
    await Promise.all([passEventsOn({ metadata }), passEventsOn({ metadata })])

    expect((await stateOf(shelf, all)).map(([at]) => at)).toEqual([0, 1, 2, 3])
    expect((await stateOf(shelf, some)).map(([at]) => at)).toEqual([0, 2])
    expect(await stateOf(shelf, none)).toEqual([])
  })

  test('are delivered at least once, in the order of each repository, by several servers and with failures', async () => {
    const shelf = await openShelf(await open())
    const { metadata, accountId } = shelf
    const webhook = await createWebhook({ metadata, webhooks: parts }, accountId, 'ci', settings)
    const repositories = ['one', 'two', 'three', 'four', 'five', 'six']
    await addEvents(shelf, repositories, 60)
    await passEventsOn({ metadata })
    const got = new Map<string, number[]>(repositories.map((name) => [name, []]))
    let sent = 0
    const send: Send = async ({ body }) => {
      sent += 1
      const { data } = JSON.parse(body)
      await Bun.sleep(sent % 3)
      if (sent % 4 === 0) return fail
      got.get(data.repository)?.push(data.at)
      return sent % 7 === 0 ? { failure: 'the answer was lost' } : succeed
    }
    const servers = [delivererOf(metadata, send), delivererOf(metadata, send)]
    await runUntil(servers, async () => (await stateOf(shelf, webhook, 'pending')).length === 0)

    expect((await stateOf(shelf, webhook, 'delivered')).length).toBe(60)
    for (const [at, name] of repositories.entries()) {
      const arrived = got.get(name) ?? []
      // A repetition follows its first arrival at once.
      expect(arrived.filter((one, place) => one !== arrived[place - 1])).toEqual(
        Array.from({ length: 10 }, (_, round) => at + round * repositories.length),
      )
    }
    expect(sent).toBeGreaterThan(60)
  })

  test('a failing repository delays no other one, is given up after its time, and can be sent again', async () => {
    const shelf = await openShelf(await open())
    const { metadata, accountId } = shelf
    const webhook = await createWebhook({ metadata, webhooks: parts }, accountId, 'ci', settings)
    await addEvents(shelf, ['good', 'bad'], 4)
    await passEventsOn({ metadata })
    const send: Send = ({ body }) => (body.includes('"bad"') ? fail : succeed)
    const server = delivererOf(metadata, send, 20)
    await runUntil([server], async () => (await stateOf(shelf, webhook, 'dead')).length === 2)

    expect((await stateOf(shelf, webhook)).map(([at, state]) => [at, state])).toEqual([
      [0, 'delivered'],
      [1, 'dead'],
      [2, 'delivered'],
      [3, 'dead'],
    ])
    const [last, first] = await metadata.webhookDeliveries.list(webhook, 'dead', undefined, 10)
    await retryDelivery({ metadata }, webhook, first?.id ?? 0)
    await retryDelivery({ metadata }, webhook, last?.id ?? 0)
    expect(await retryDelivery({ metadata }, webhook, 999_999).catch(String)).toContain('no such delivery')
    const repaired = delivererOf(metadata, () => succeed)
    await runUntil([repaired], async () => (await stateOf(shelf, webhook, 'pending')).length === 0)
    expect((await stateOf(shelf, webhook, 'delivered')).length).toBe(4)

    await passTime()
    expect(await removeOldEvents({ metadata }, { eventsMs: 3_600_000, deliveriesMs: 3_600_000 }, () => false)).toBe(0)
    expect((await stateOf(shelf, webhook)).length).toBe(4)
    expect(await removeOldEvents({ metadata }, { eventsMs: 0, deliveriesMs: 0 }, () => false)).toBe(3)
    expect(await stateOf(shelf, webhook)).toEqual([])
  })

  test('a server whose lease has ended records nothing, and 410 disables the webhook', async () => {
    const shelf = await openShelf(await open())
    const { metadata, accountId } = shelf
    const webhook = await createWebhook({ metadata, webhooks: parts }, accountId, 'ci', settings)
    await addEvents(shelf, ['app'], 2)
    await passEventsOn({ metadata })
    const claim = (leaseMs: number) =>
      metadata.transaction(({ webhookDeliveries }) => webhookDeliveries.claim(webhook.id, leaseMs))
    const old = await claim(1)
    await passTime()
    const lease = await claim(60_000)
    expect([old?.webhook.id, lease?.webhook.id]).toEqual([webhook.id, webhook.id])
    expect(await claim(60_000)).toBeUndefined()
    expect(await metadata.webhookDeliveries.listDue(10)).toEqual([])
    const renew = (held: typeof lease) =>
      metadata.transaction(async ({ webhookDeliveries }) => held && webhookDeliveries.renew(held, 60_000))
    expect([await renew(old), await renew(lease)]).toEqual([false, true])
    await updateWebhook({ metadata, webhooks: parts }, webhook, settings, { rotatesSecret: false })
    expect(await renew(lease)).toBe(false)

    await metadata.accounts.setState('acme', 'disabled')
    let sent = 0
    const gone = delivererOf(metadata, () => {
      sent += 1
      return { status: 410, retryAfterMs: undefined }
    })
    await gone.start()
    await gone.settle()
    expect([sent, await metadata.webhookDeliveries.listDue(10)]).toEqual([0, []])
    await metadata.accounts.setState('acme', 'enabled')
    await updateWebhook({ metadata, webhooks: parts }, webhook, settings, { rotatesSecret: false })
    await gone.start()
    await gone.settle()
    const found = await metadata.webhooks.find(accountId, 'ci')
    expect([sent, found?.isEnabled, found?.disabledBecause]).toEqual([1, false, 'the receiver answered 410 Gone'])
    expect((await stateOf(shelf, webhook, 'pending')).length).toBe(2)
  })
}
