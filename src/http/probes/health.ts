import { Unavailable } from '../../oci/errors.ts'
import { type Answer, type Exchange, jsonAnswer } from '../exchange.ts'

/** GET /healthz - the process is alive. */
export async function getHealth({ app }: Exchange): Promise<Answer> {
  return jsonAnswer(200, { status: 'ok', version: app.http.version })
}

/**
 * GET /readyz - requests can be served: both stores answer, and the process is not going down. A disk that is nearly full
 * is reported in the body and not by the status: pulls, deletions and the revoking of keys still work, and a balancer that
 * turned away from this server would end them too.
 */
export async function getReadiness({ app }: Exchange): Promise<Answer> {
  if (app.isLeaving()) throw new Unavailable('the server (it is shutting down)')
  await app.metadata.probe()
  await app.blobs.probe()
  return jsonAnswer(200, { status: 'ready', disk: app.disk.isLow() ? 'low' : 'ok' })
}
