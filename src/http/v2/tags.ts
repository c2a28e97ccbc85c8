import type { Tag } from '../../oci/names.ts'
import { listTags, readTagPages } from '../../registry/tags.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { nextPageHeaders, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

export const tagRoutes: readonly Route[] = [
  {
    operationId: 'getImageTagsList',
    method: 'GET',
    pattern: '/{name}/tags/list',
    access: 'repository',
    right: 'pull',
    handle: getTagsList,
    summary: 'List the tags of an image',
    description: 'All of them, unless `n` limits the page.',
    parameters: ['n', 'last'],
    answers: {
      200: { description: 'The tags.', headers: { Link: 'sometimes' }, content: json('TagsListResponse') },
    },
    refusals: ['page-size-invalid', 'name-unknown'],
  },
]

/** The memory for a page of the longest tags, as rows and as text. */
const pageBytesMax = 256 * 1024

async function getTagsList(exchange: RepositoryExchange): Promise<Answer> {
  const { app, repositoryKey, mount, target } = exchange
  const request = parsePage(target.query, app.settings.pageMax)
  if (request.limit === undefined) return listAllTags(exchange, request.after)
  const page = await listTags(app, repositoryKey, { after: request.after, limit: request.limit })
  const last = page.hasMore ? page.items.at(-1) : undefined
  const headers = nextPageHeaders(`${mount}/${repositoryKey.repository}/tags/list`, request.limit, last)
  return jsonAnswer(200, { name: repositoryKey.repository, tags: page.items }, headers)
}

/** A list of more than one page is read from the store only as fast as the client receives it. */
async function listAllTags(
  { app, repositoryKey, method }: RepositoryExchange,
  after: string | undefined,
): Promise<Answer> {
  const pages = readTagPages(app, repositoryKey, after)
  const first = await pages.next()
  const tags = first.done === true ? [] : first.value.items
  if (first.done === true || !first.value.hasMore) return jsonAnswer(200, { name: repositoryKey.repository, tags })
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    memoryBytes: pageBytesMax,
    ...(method === 'HEAD' ? {} : { body: streamOf(repositoryKey.repository, tags, pages) }),
  }
}

function streamOf(
  name: string,
  first: readonly Tag[],
  pages: AsyncGenerator<{ readonly items: readonly Tag[] }>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  // No tag contains a character that JSON would escape.
  const textOf = (tags: readonly Tag[]) => `"${tags.join('","')}"`
  let begin: string | undefined = `{"name":${JSON.stringify(name)},"tags":[${textOf(first)}`
  return new ReadableStream<Uint8Array>(
    {
      async pull(sink) {
        if (begin !== undefined) {
          sink.enqueue(encoder.encode(begin))
          begin = undefined
          return
        }
        const page = await pages.next()
        if (page.done !== true) {
          sink.enqueue(encoder.encode(`,${textOf(page.value.items)}`))
          return
        }
        sink.enqueue(encoder.encode(']}'))
        sink.close()
      },
      cancel: async () => void (await pages.return(undefined)),
    },
    { highWaterMark: 0 },
  )
}
