// Mounting a blob from another repository: distribution-spec end-11, with and without `from`.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, pushBlob } from '../../support/api/api-images.ts'
import { mounts, type Reply, startApi } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const digest = await pushBlob(server, 'mounts/source', 'mounted content')
let made = 0

describe.each(mounts)('mounting a blob at %s', (mount) => {
  /** Into a new repository. */
  const mountBlob = async (query: string): Promise<{ reply: Reply; repository: string }> => {
    made += 1
    const repository = `mounts/target-${made}`
    return { reply: await server.ask('POST', `${mount}/${repository}/blobs/uploads/?${query}`), repository }
  }

  test.each([
    ['from the repository that has it', `mount=${digest}&from=mounts/source`],
    ['from wherever it is, without from', `mount=${digest}`],
    ['with parameters that other registries know', `mount=${digest}&from=mounts/source&origin=docker.io`],
  ])('answers 201 with its new address, %s', async (_, query) => {
    const { reply, repository } = await mountBlob(query)

    expect([reply.status, reply.text]).toEqual([201, ''])
    expect(reply.headers.get('location')).toBe(`${mount}/${repository}/blobs/${digest}`)
    expect(reply.headers.get('docker-content-digest')).toBe(digest)
  })

  test('makes the blob readable there', async () => {
    const { repository } = await mountBlob(`mount=${digest}&from=mounts/source`)

    expect((await server.ask('GET', `${mount}/${repository}/blobs/${digest}`)).text).toBe('mounted content')
  })

  test.each([
    ['when the repository has it not', `mount=${digest}&from=mounts/none`],
    ['when no repository has it', `mount=${digestOf('nobody has this')}`],
    ['when the repository has no valid name', `mount=${digest}&from=NOT/valid`],
  ])('opens an upload instead %s', async (_, query) => {
    const { reply, repository } = await mountBlob(query)

    expect(reply.status).toBe(202)
    expect(reply.headers.get('location')).toStartWith(`${mount}/${repository}/blobs/uploads/`)
    expect(reply.headers.get('docker-content-digest')).toBeNull()
  })

  test.each(['sha256:short', '', 'md5:d41d8cd98f00b204e9800998ecf8427e'])(
    'answers 400 DIGEST_INVALID to mount=%s',
    async (bad) => {
      const { reply } = await mountBlob(`mount=${bad}&from=mounts/source`)

      expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'DIGEST_INVALID' }] }])
    },
  )
})
