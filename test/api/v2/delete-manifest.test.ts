// deleteManifest: distribution-spec end-9; decisions.md 3.
import { afterAll, describe, expect, test } from 'bun:test'
import { imageOf, indexOf, pushApiImage, putManifest } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi, verdictOf } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

describe.each(mounts)('deleteManifest at %s', (mount) => {
  const repository = mount === '/v2' ? 'delete/root' : 'delete/prefix'
  const manifests = `${mount}/${repository}/manifests`
  /** An image of its own for each test. */
  const push = (tag: string) => pushApiImage(server, repository, tag, { annotations: { tag } })
  const statusOf = async (reference: string) => (await server.ask('GET', `${manifests}/${reference}`)).status

  test('by tag answers 202 without a body', async () => {
    await push('gone')
    const reply = await server.ask('DELETE', `${manifests}/gone`)

    expect([reply.status, reply.text, ownHeaders(reply)]).toEqual([202, '', ['content-length']])
  })

  test('by tag leaves the other tags of the manifest', async () => {
    const image = await push('one')
    await putManifest(server, repository, 'other', image)
    await server.ask('DELETE', `${manifests}/one`)

    expect([await statusOf('one'), await statusOf('other')]).toEqual([404, 200])
  })

  test('by digest takes the manifest away, and all its tags', async () => {
    const image = await push('first')
    await putManifest(server, repository, 'second', image)
    const reply = await server.ask('DELETE', `${manifests}/${image.digest}`)

    expect(reply.status).toBe(202)
    expect([await statusOf(image.digest), await statusOf('first'), await statusOf('second')]).toEqual([404, 404, 404])
  })

  test.each(['never', `sha256:${'1'.repeat(64)}`])('answers 404 for %s', async (reference) => {
    await push('there')
    const [reply, elsewhere] = [
      await server.ask('DELETE', `${manifests}/${reference}`),
      await server.ask('DELETE', `${mount}/no/such/manifests/${reference}`),
    ]

    expect([verdictOf(reply), verdictOf(elsewhere)]).toEqual(['404 MANIFEST_UNKNOWN', '404 NAME_UNKNOWN'])
  })

  test('answers 404 the second time', async () => {
    const { digest } = await push('twice')
    await server.ask('DELETE', `${manifests}/${digest}`)

    expect((await server.ask('DELETE', `${manifests}/${digest}`)).status).toBe(404)
  })

  test('answers 405 UNSUPPORTED for a manifest that an index lists, until the index is deleted', async () => {
    const child = await push('child')
    const index = indexOf([child.descriptor])
    await putManifest(server, repository, 'index', index)

    expect(verdictOf(await server.ask('DELETE', `${manifests}/${child.digest}`))).toBe('405 UNSUPPORTED')
    expect(await statusOf(child.digest)).toBe(200)
    // The tag of a listed manifest can go before.
    expect((await server.ask('DELETE', `${manifests}/child`)).status).toBe(202)
    await server.ask('DELETE', `${manifests}/${index.digest}`)
    expect((await server.ask('DELETE', `${manifests}/${child.digest}`)).status).toBe(202)
  })
})

test('a listed manifest can be deleted with manifests.missing_content: allow', async () => {
  const own = await startApi({ BERTH_MANIFESTS__MISSING_CONTENT: 'allow' })
  const child = await pushApiImage(own, 'app', 'child')
  await putManifest(own, 'app', 'index', indexOf([child.descriptor]))
  const reply = await own.ask('DELETE', `/v2/app/manifests/${child.digest}`)
  const index = await own.ask('GET', '/v2/app/manifests/index')
  await own.stop()

  expect([reply.status, index.status]).toEqual([202, 200])
})

test('a deleted manifest can be pushed again', async () => {
  const image = await pushApiImage(server, 'delete/again', 'v1')
  await server.ask('DELETE', `/v2/delete/again/manifests/${image.digest}`)

  expect((await putManifest(server, 'delete/again', 'v1', imageOf())).status).toBe(201)
})
