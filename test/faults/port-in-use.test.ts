// Two registries on one port would share its requests: half of a push would reach the wrong registry.
import { expect, test } from 'bun:test'
import { startBerth } from '../support/server/berth-process.ts'

test('a second server on a used port refuses to start and names the setting, and the first one goes on', async () => {
  const first = await startBerth()
  try {
    const port = new URL(first.url).port
    const second = startBerth({ settings: { BERTH_SERVER__PORT: port } })
    const outcome = await second.then(
      async (server) => `started, and ended with ${await server.stop()}`,
      (error: unknown) => String(error),
    )

    expect(outcome).toContain('Berth ended with 1 before it was ready')
    expect(outcome).toContain(`127.0.0.1:${port}`)
    expect(outcome).toContain('server.port')
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const headers = { 'x-api-key': first.apiKey, connection: 'close' }
        return (await fetch(`${first.url}/v2/`, { headers })).status
      }),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
  } finally {
    await first.stop()
  }
})
