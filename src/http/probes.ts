import { Unavailable } from '../oci/errors.ts'
import { type Answer, jsonAnswer } from './answer.ts'
import type { Exchange } from './exchange.ts'
import { json, type Route } from './route.ts'

export const probeRoutes: readonly Route[] = [
  {
    operationId: 'getHealth',
    method: 'GET',
    pattern: '/healthz',
    access: 'anyone',
    handle: getHealth,
    summary: 'Is the process alive?',
    hasNoDependencies: true,
    answers: { 200: { description: 'Yes.', content: json('HealthResponse') } },
  },
  {
    operationId: 'getReadiness',
    method: 'GET',
    pattern: '/readyz',
    access: 'anyone',
    handle: getReadiness,
    summary: 'Can requests be served?',
    answers: { 200: { description: 'Yes.', content: json('ReadinessResponse') } },
  },
]

async function getHealth({ app }: Exchange): Promise<Answer> {
  return jsonAnswer(200, { status: 'ok', version: app.http.version })
}

/**
 * The server is ready when both stores answer and the process is not shutting down. A disk that is nearly full is
 * reported in the body and not by the status: pulls, deletions and the revocation of keys still work, and a load
 * balancer that removed this server would end them too.
 */
async function getReadiness({ app }: Exchange): Promise<Answer> {
  if (app.isLeaving()) throw new Unavailable('server')
  await app.metadata.probe()
  await app.blobs.probe()
  return jsonAnswer(200, { status: 'ready', disk: app.disk.isLow() ? 'low' : 'ok' })
}
