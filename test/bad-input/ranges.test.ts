import { describe, expect, test } from 'bun:test'
import { GuardedServer, manifestDigest, repository } from '../support/server/guarded-server.ts'

const guard = new GuardedServer()

describe('a part of a blob', () => {
  test('of a manifest is not given: it comes whole', async () => {
    const answer = await guard.fetch(`/v2/${repository}/manifests/${manifestDigest}`, {
      headers: { range: 'bytes=0-5' },
    })
    expect(answer.status).toBe(200)
  })

  guard.losesNothing()
})

describe('where a page begins', () => {
  test.each([
    '',
    '%00',
    '%FF',
    '%F0%9F%92%A5',
    "'; DROP TABLE tags; --",
    '" OR 1=1 --',
    '%25',
    '_',
    '\\',
    'z'.repeat(4_000),
    '../../../../etc/passwd',
    '{{7*7}}',
    '%0d%0aX-Injected: 1',
  ])('%p is only compared', async (last) => {
    const query = last.includes('%') ? `last=${last.replaceAll(' ', '%20')}` : new URLSearchParams({ last }).toString()
    for (const list of [
      '/v2/_catalog',
      `/v2/${repository}/tags/list`,
      `/v2/${repository}/referrers/${manifestDigest}`,
    ]) {
      const answer = await guard.fetch(`${list}?${query}`)
      expect([list, answer.status, answer.headers.get('x-injected')]).toEqual([list, 200, null])
    }
  })

  test.each(["'; DROP TABLE manifests; --", '%', '%00', '\\', 'a'.repeat(4_000)])(
    'an artifact type of %p finds nothing',
    async (type) => {
      const query = new URLSearchParams({ artifactType: type === '%00' ? '\0' : type })
      const answer = await guard.fetch(`/v2/${repository}/referrers/${manifestDigest}?${query}`)
      expect([answer.status, ((await answer.json()) as { manifests: unknown[] }).manifests]).toEqual([200, []])
    },
  )

  guard.losesNothing()
})
