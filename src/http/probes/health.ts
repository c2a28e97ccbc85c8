import { Unavailable } from '../../oci/errors.ts'
import { type Answer, type Exchange, jsonAnswer } from '../exchange.ts'

/** GET /healthz - the process is alive. */
export async function getHealth(_exchange: Exchange): Promise<Answer> {
  return jsonAnswer(200, { status: 'ok' })
}

/** GET /readyz - requests can be served: both stores answer, and the process is not going down. */
export async function getReadiness({ app }: Exchange): Promise<Answer> {
  if (app.isLeaving()) throw new Unavailable('the server (it is shutting down)')
  await app.metadata.probe()
  await app.blobs.probe()
  return jsonAnswer(200, { status: 'ready' })
}
