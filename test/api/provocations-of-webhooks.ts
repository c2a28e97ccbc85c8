// How the refusals that are about webhooks are provoked over the wire.
import type { Refusal } from '../../src/oci/errors.ts'
import { type ApiServer, api } from '../support/api/api-server.ts'
import { get, type Provocation, type Way } from './provocation.ts'

const path = `${api}/webhooks`
const headers = { 'content-type': 'application/json' }

function creation(name: string): Provocation {
  return { method: 'POST', path, headers, body: JSON.stringify({ name, url: 'https://ci.example.com/hook' }) }
}

async function create(server: ApiServer, name: string): Promise<void> {
  const { method, path: address, ...question } = creation(name)
  await server.ask(method, address, question)
}

export const webhooks = {
  'webhook-unknown': { service: () => get(`${path}/nothing`) },
  'webhook-exists': {
    service: async (_mount, server) => {
      await create(server, 'twice')
      return creation('twice')
    },
  },
  'too-many-webhooks': {
    settings: { BERTH_WEBHOOKS__PER_ACCOUNT: '0' },
    service: () => creation('one-too-many'),
  },
  'delivery-unknown': {
    service: async (_mount, server) => {
      await create(server, 'idle')
      return { method: 'POST', path: `${path}/idle/deliveries/1/redeliver` }
    },
  },
} satisfies Partial<Record<Refusal, Way>>
