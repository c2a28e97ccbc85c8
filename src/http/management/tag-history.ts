import { formatTime, parseTime } from '../../lib/quantities.ts'
import { parseDigest } from '../../oci/digest.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { parseTag } from '../../oci/names.ts'
import type { TagMove } from '../../ports/tag-history.ts'
import { formatPosition, parsePosition } from '../../registry/pages.ts'
import {
  getTagDigest,
  listTagMoves,
  type RestoreTarget,
  restoreTag,
  toHistoryPosition,
} from '../../registry/tag-history.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { jsonBody, readJson } from '../json-body.ts'
import { repositoriesPath } from '../mounts.ts'
import { nextPageHeaders, openPosition, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'
import { fieldInvalid } from '../strict-json.ts'

const restoreRequest = jsonBody('RestoreTagRequest', 4096)

export const tagHistoryRoutes: readonly Route[] = [
  {
    operationId: 'getTagHistory',
    method: 'GET',
    pattern: `${repositoriesPath}/{name}/-/tags/{tag}/history`,
    access: 'repository',
    right: 'pull',
    handle: getTagHistory,
    summary: 'List the moves of a tag, the newest first',
    description:
      'Every push, restore and deletion that changed where the tag points. A move is kept for `garbage.tag_history`, and until a later move is as old.',
    parameters: ['plainTag', 'n', 'last'],
    answers: {
      200: { description: 'The moves.', headers: { Link: 'sometimes' }, content: json('TagHistoryResponse') },
    },
    refusals: ['name-unknown', 'tag-invalid', 'page-size-invalid'],
  },
  {
    operationId: 'getTag',
    method: 'GET',
    pattern: `${repositoriesPath}/{name}/-/tags/{tag}`,
    access: 'repository',
    right: 'pull',
    handle: getTag,
    summary: 'Get the digest to which a tag points, now or at a time',
    parameters: ['plainTag', 'at'],
    answers: { 200: { description: 'The digest.', content: json('TagResponse') } },
    refusals: ['name-unknown', 'tag-invalid', 'time-invalid', 'manifest-unknown', 'tag-history-unknown'],
  },
  {
    operationId: 'restoreTag',
    method: 'POST',
    pattern: `${repositoriesPath}/{name}/-/tags/{tag}/restore`,
    access: 'repository',
    right: 'push',
    handle: postRestore,
    summary: 'Point a tag to a manifest that it had before',
    description:
      'Also if the tag was deleted. Without `digest` and `at`, the last move is undone. The manifest must still exist.',
    parameters: ['plainTag'],
    requestBody: restoreRequest,
    answers: { 200: { description: 'The tag points to this digest.', content: json('RestoredTagResponse') } },
    refusals: [
      'body-invalid',
      'name-unknown',
      'tag-invalid',
      'digest-invalid',
      'manifest-unknown',
      'tag-history-unknown',
      'tag-immutable',
    ],
  },
]

async function getTagHistory({ app, repositoryKey, path, target }: RepositoryExchange): Promise<Answer> {
  const tag = parseTag(path['tag'] ?? '')
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const before = parsePosition(openPosition(app, after), toHistoryPosition)
  const page = await listTagMoves(app, repositoryKey, tag, { before, limit })
  const last = page.hasMore ? page.items.at(-1) : undefined
  const address = `${repositoriesPath}/${repositoryKey.repository}/-/tags/${tag}/history`
  return jsonAnswer(
    200,
    { name: repositoryKey.repository, tag, moves: page.items.map(showMove) },
    nextPageHeaders(address, limit, last && app.sealer.seal(formatPosition(last.movedAt, last.id))),
  )
}

async function getTag({ app, repositoryKey, path, target }: RepositoryExchange): Promise<Answer> {
  const tag = parseTag(path['tag'] ?? '')
  const text = target.query.get('at')
  const time = text === null ? undefined : parseTime(text)
  if (text !== null && time === undefined) throw new RegistryRefusal('time-invalid', { at: text.slice(0, 64) })
  const digest = await getTagDigest(app, repositoryKey, tag, time)
  return jsonAnswer(200, { name: repositoryKey.repository, tag, digest, at: formatTime(time) })
}

async function postRestore(exchange: RepositoryExchange): Promise<Answer> {
  const { app, principal, repositoryKey, path } = exchange
  const tag = parseTag(path['tag'] ?? '')
  const body = await readJson(exchange, restoreRequest)
  const digest = await restoreTag(app, repositoryKey, tag, parseTarget(body.digest, body.at), principal)
  return jsonAnswer(200, { name: repositoryKey.repository, tag, digest })
}

function parseTarget(digest: string | undefined, timeText: string | undefined): RestoreTarget {
  if (digest !== undefined && timeText !== undefined) throw fieldInvalid('at', 'must not be given with digest')
  if (digest !== undefined) return { digest: parseDigest(digest) }
  if (timeText === undefined) return 'before the last move'
  const time = parseTime(timeText)
  if (time === undefined) throw fieldInvalid('at', 'must be a time with its zone, such as 2030-01-31T12:00:00Z')
  return { time }
}

function showMove(move: TagMove) {
  return {
    from: move.from ?? null,
    to: move.to ?? null,
    movedAt: new Date(move.movedAt).toISOString(),
    movedBy: move.movedBy,
    cause: move.cause,
  }
}
