// spec.md 9: "Allowed values of {version}: a single value, 2023-12-28".
import { afterAll, describe, expect, test } from 'bun:test'
import { startApi } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const versions = ['2023-12-27', '2023-12-29', '2024-01-01', 'v2', 'latest', '2023-12-28.', '2021-02-21', '', '%20']
const paths = ['/enable', '/stats', '/v2/', '/v2/_catalog', '/v2/app/tags/list']

describe.each(versions)('the version "%s"', (version) => {
  test.each(paths)('has no %s, and says so with {msg} alone', async (path) => {
    const reply = await server.ask(path === '/enable' ? 'POST' : 'GET', `/api/${version}${path}`)

    // An empty segment is no path at all.
    expect(reply.status).toBe(version === '' ? 400 : 404)
    expect(reply.headers.get('content-type')).toBe('application/json')
    expect(reply.json()).toEqual({ msg: expect.any(String) })
  })
})

test('an unknown path of the known version is 404 with {msg}', async () => {
  const reply = await server.ask('GET', '/api/2023-12-28/nothing')

  expect([reply.status, reply.json()]).toEqual([404, { msg: 'no such endpoint' }])
})

test('the version alone is 404 with {msg}', async () => {
  const reply = await server.ask('GET', '/api/2023-12-28')

  expect([reply.status, reply.json()]).toEqual([404, { msg: 'no such endpoint' }])
})
