import { addressList } from './address-kinds.ts'
import { duration, flag, setting, wholeNumber } from './setting-kinds.ts'

/** The part of `settingsTable` about events and webhooks. */
export const eventSettings = {
  eventsKeepMs: setting(
    'events.keep',
    duration('7d', '1m'),
    'How long events and finished deliveries of webhooks are kept. An event is kept until it was passed on to the webhooks, and at least for `audit.keep`, because the audit log shows it.',
  ),
  webhookNetworks: setting(
    'webhooks.allowed_networks',
    addressList(),
    'Addresses and ranges that webhooks may call although they are not public, also with `http://` and at any port.',
  ),
  webhookHttp: setting(
    'webhooks.allow_http',
    flag(false),
    'Whether webhooks may call public addresses with `http://`. Everybody on the way can then read the events.',
  ),
  webhookTimeoutMs: setting(
    'webhooks.timeout',
    duration('10s', '1s', '60s'),
    'How long one attempt to deliver an event may take.',
  ),
  webhookGiveUpMs: setting(
    'webhooks.give_up',
    duration('3d', '0s', '30d'),
    'A delivery is given up when all attempts for its repository have failed for this long. It can be sent again later.',
  ),
  webhooksPerAccount: setting(
    'webhooks.per_account',
    wholeNumber(20, 0, 1_000),
    'The largest number of webhooks of one account. `0`: no account can create one.',
  ),
} as const
