import type { TextSealer } from '../lib/text-sealer.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { SendResult, WebhookSender } from '../ports/webhook-sender.ts'
import type { Delivery, DeliveryLease, DeliveryQueue } from '../ports/webhooks.ts'
import { formatEventId } from './event-ids.ts'
import { eventsAtOnce, numberEvents } from './events.ts'
import { isReadOnly, staysWritable } from './read-only.ts'
import { isWanted, type MessageContext, toMessage } from './webhook-messages.ts'

export interface DeliverySettings {
  /** The address of the registry as clients know it. */
  readonly origin: string
  /** The delay after the first failure. It doubles with each further one. */
  readonly firstDelayMs: number
  /** A delivery is given up when all attempts have failed for this long. */
  readonly giveUpMs: number
  /** The longest time of one attempt. */
  readonly timeoutMs: number
}

export interface DeliveryNeeds {
  readonly metadata: MetadataStore
  readonly sender: WebhookSender
  readonly clock: Clock
  readonly sealer: Pick<TextSealer, 'seal'>
  readonly settings: DeliverySettings
}

const batchesMax = 100

/**
 * Passes all new events on to the webhooks that want them: one transaction adds the deliveries and moves the position, so no
 * event is lost or added twice, on any number of servers.
 */
export async function passEventsOn(
  { metadata }: Pick<DeliveryNeeds, 'metadata'>,
  shouldStop: () => boolean = () => false,
): Promise<void> {
  await numberEvents({ metadata })
  for (let batches = 0; batches < batchesMax && !shouldStop(); batches += 1) {
    const isLast = (await metadata.events.listAllAfter(await metadata.events.findPassed(), 1)).length === 0
    if (isLast || (await metadata.transaction(passBatchOn)) < eventsAtOnce) return
  }
}

async function passBatchOn(tables: Tables): Promise<number> {
  if (!(await staysWritable(tables))) return 0
  const events = await tables.events.listAllAfter(await tables.events.lockPassed(), eventsAtOnce)
  const last = events.at(-1)
  if (last === undefined) return 0
  const accounts = [...new Set(events.map(({ accountId }) => accountId))]
  // In the order of their ids, so that two transactions never wait for each other.
  for (const webhook of await tables.webhooks.listEnabled(accounts)) {
    const wanted = events.filter((event) => event.accountId === webhook.accountId && isWanted(webhook, event))
    if (wanted.length > 0) await tables.webhookDeliveries.add(webhook, wanted)
  }
  await tables.events.setPassed(last.position)
  return events.length
}

/** How many webhooks this process delivers at once, and how many queues of each. Each needs a connection and a few kilobytes. */
const webhooksMax = 64
const webhooksPerAccountMax = 16
const queuesAtOnce = 4
const deliveriesPerQueue = 20
const roundsMax = 20
/** How long a webhook of an account that is not enabled is left alone. */
const closedPauseMs = 60_000
/** The same for a webhook of an account with many others that are being delivered. */
const crowdedPauseMs = 1_000
/** A lease is renewed with each record. It covers one attempt and the record after it, with time to spare. */
const leaseReserveMs = 30_000

/**
 * Delivers what is due. Any server may deliver for a webhook, but only one at a time: it holds a lease with a fencing token, and
 * records each result in a transaction that renews the lease. After a crash the lease ends, and another server repeats the
 * attempt whose result was not recorded. So every delivery arrives at least once, and those of one repository in order.
 */
export class WebhookDeliverer {
  readonly #needs: DeliveryNeeds
  readonly #running = new Map<RowId, Promise<void>>()
  readonly #accounts = new Map<RowId, number>()
  readonly #stopping = new AbortController()

  constructor(needs: DeliveryNeeds) {
    this.#needs = needs
  }

  /** Starts the deliveries that are due, and does not wait for them: a slow receiver delays no other one. */
  async start(): Promise<void> {
    const { metadata } = this.#needs
    if (this.#isStopping || (await isReadOnly(this.#needs))) return
    const free = webhooksMax - this.#running.size
    if (free <= 0) return
    for (const id of await metadata.webhookDeliveries.listDue(free)) {
      if (this.#running.has(id) || this.#isStopping) continue
      const work = this.#deliverWebhook(id)
        // The lease ends by itself, and another attempt follows.
        .catch(() => undefined)
        .finally(() => this.#running.delete(id))
      this.#running.set(id, work)
    }
  }

  /** Resolves when nothing that was started is running any more. */
  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  /** Ends running attempts. They are repeated later, by any server. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.settle()
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  get #leaseMs(): number {
    return this.#needs.settings.timeoutMs + leaseReserveMs
  }

  async #deliverWebhook(id: RowId): Promise<void> {
    const { metadata } = this.#needs
    const claimed = await metadata.transaction((tables) => this.#claim(tables, id))
    if (claimed === undefined) return
    const { lease, accountName } = claimed
    const { accountId } = lease.webhook
    const running = this.#accounts.get(accountId) ?? 0
    this.#accounts.set(accountId, running + 1)
    try {
      if (running < webhooksPerAccountMax) await this.#deliverQueues(lease, accountName)
    } finally {
      const left = (this.#accounts.get(accountId) ?? 1) - 1
      if (left > 0) this.#accounts.set(accountId, left)
      else this.#accounts.delete(accountId)
      const pauseMs = running < webhooksPerAccountMax ? 0 : crowdedPauseMs
      await metadata.transaction(({ webhookDeliveries }) => webhookDeliveries.release(lease, pauseMs))
    }
  }

  async #claim(tables: Tables, id: RowId): Promise<{ lease: DeliveryLease; accountName: string } | undefined> {
    if (!(await staysWritable(tables))) return undefined
    const lease = await tables.webhookDeliveries.claim(id, this.#leaseMs)
    if (lease === undefined) return undefined
    const account = await tables.accounts.findLocked(lease.webhook.accountId)
    if (account?.state === 'enabled') return { lease, accountName: account.name }
    await tables.webhookDeliveries.release(lease, closedPauseMs)
    return undefined
  }

  /** In rounds, because more may become due meanwhile. After the last one, another server may continue. */
  async #deliverQueues(lease: DeliveryLease, accountName: string): Promise<void> {
    const context = { origin: this.#needs.settings.origin, accountName }
    const turn = new DeliveryTurn(this.#needs, lease, context, this.#leaseMs, this.#stopping.signal)
    for (let rounds = 0; rounds < roundsMax && !turn.isOver; rounds += 1) {
      const queues = await this.#needs.metadata.webhookDeliveries.listQueues(lease.webhook.id, queuesAtOnce)
      if (queues.length === 0) return
      await Promise.all(queues.map((queue) => turn.deliver(queue)))
    }
  }
}

/** The deliveries of one webhook under one lease. */
class DeliveryTurn {
  readonly #needs: DeliveryNeeds
  readonly #lease: DeliveryLease
  readonly #context: MessageContext
  readonly #leaseMs: number
  readonly #signal: AbortSignal
  #renewedAt: number
  #isOver = false

  constructor(
    needs: DeliveryNeeds,
    lease: DeliveryLease,
    context: MessageContext,
    leaseMs: number,
    signal: AbortSignal,
  ) {
    this.#needs = needs
    this.#lease = lease
    this.#context = context
    this.#leaseMs = leaseMs
    this.#signal = signal
    this.#renewedAt = needs.clock.steadyNow()
  }

  async deliver(queue: DeliveryQueue): Promise<void> {
    const { metadata, sender, sealer } = this.#needs
    const { webhook } = this.#lease
    const due = await metadata.webhookDeliveries.listPending(webhook.id, queue.repository, deliveriesPerQueue)
    for (const [at, delivery] of due.entries()) {
      // A process that stood still may have lost the lease. It must not send behind the back of the next holder.
      if (this.isOver || this.#needs.clock.steadyNow() - this.#renewedAt > leaseReserveMs / 2) return
      const id = formatEventId(sealer, delivery.event)
      const result = await sender.send(toMessage(webhook, delivery.event, this.#context, id), this.#signal)
      if (this.#signal.aborted && 'failure' in result) return
      const state = at === 0 ? queue : { attempts: 0, failingMs: undefined }
      if (!(await this.#record(delivery, state, result))) return
    }
  }

  /** Nothing more may be sent. */
  get isOver(): boolean {
    return this.#isOver || this.#signal.aborted
  }

  /** True if the next delivery of the queue may follow. */
  async #record(
    delivery: Delivery,
    { attempts, failingMs = 0 }: Pick<DeliveryQueue, 'attempts' | 'failingMs'>,
    result: SendResult,
  ): Promise<boolean> {
    const outcome = 'failure' in result ? result.failure : `status ${result.status}`
    const isDelivered = 'status' in result && result.status >= 200 && result.status < 300
    const isGone = 'status' in result && result.status === 410
    const isRecorded = await this.#needs.metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return false
      const { webhookDeliveries } = tables
      if (!(await webhookDeliveries.renew(this.#lease, this.#leaseMs))) return false
      if (isDelivered) await webhookDeliveries.finish(delivery, 'delivered', outcome)
      else if (failingMs >= this.#needs.settings.giveUpMs) await webhookDeliveries.finish(delivery, 'dead', outcome)
      else await webhookDeliveries.postpone(delivery, delayAfter(attempts, result, this.#needs.settings), outcome)
      // RFC 9110: the resource "is no longer available at the origin server and that this condition is likely to be permanent".
      if (isGone) {
        await tables.webhooks.disable(this.#lease.webhook.id, 'the receiver answered 410 Gone')
      }
      return true
    })
    if (isRecorded && !isGone) this.#renewedAt = this.#needs.clock.steadyNow()
    else this.#isOver = true
    return isRecorded && isDelivered
  }
}

const delayMaxMs = 3_600_000
const retryAfterMaxMs = 86_400_000

/** Doubles with each attempt. A random part keeps many receivers behind one proxy from being called at the same moment. */
function delayAfter(
  attempts: number,
  result: SendResult,
  { firstDelayMs }: Pick<DeliverySettings, 'firstDelayMs'>,
): number {
  const longest = Math.min(delayMaxMs, firstDelayMs * 2 ** Math.min(attempts, 20))
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  const delayMs = longest / 2 + ((random / 2 ** 32) * longest) / 2
  const asked = 'status' in result ? (result.retryAfterMs ?? 0) : 0
  return Math.round(Math.max(delayMs, Math.min(asked, retryAfterMaxMs)))
}
