import { countImages, disableAccount, enableAccount } from '../../registry/service.ts'
import { type Answer, type CallerExchange, jsonAnswer } from '../exchange.ts'

/** POST /enable */
export async function enableService({ app, principal }: CallerExchange): Promise<Answer> {
  await enableAccount(app, principal.account)
  return { status: 200, headers: {} }
}

/** POST /disable */
export async function disableService({ app, principal }: CallerExchange): Promise<Answer> {
  await disableAccount(app, principal.account)
  return { status: 200, headers: {} }
}

/** GET /stats */
export async function getStats({ app, principal, peers, request }: CallerExchange): Promise<Answer> {
  return jsonAnswer(200, {
    imageCount: await countImages(app, principal.account),
    serverUrl: peers.originOf(request),
  })
}
