// A server with two workers: what one process promises, both promise together.
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf, generatedBytes } from '../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { PushingClients } from '../../support/clients/pushing-clients.ts'
import { checkBlob, pushBlob, pushImage } from '../../support/clients/registry-client.ts'
import { until } from '../../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../../support/server/berth-process.ts'
import { workersOf } from '../../support/server/workers.ts'
import { auditStores, countRows } from '../../support/stores/store-audit.ts'
import { PinnedClient, type Reply } from './pinned-client.ts'

const workers = { BERTH_SERVER__WORKERS: '2' }
const repository = 'team/app'
const temporaryFolder = useTemporaryFolders('workers')
const whole = generatedBytes(900_000, 11)

const started: BerthProcess[] = []

async function startWorkers(settings: Readonly<Record<string, string>> = {}, dataDir?: string): Promise<BerthProcess> {
  const options = { settings: { ...workers, ...settings } }
  const berth = await startBerth(dataDir === undefined ? options : { ...options, dataDir })
  started.push(berth)
  return berth
}

afterEach(async () => {
  for (const berth of started.splice(0)) await berth.stop()
})

async function twoClients(berth: BerthProcess): Promise<[PinnedClient, PinnedClient]> {
  const [a, b] = [...(await PinnedClient.forEachWorker(berth)).values()]
  if (a === undefined || b === undefined) throw new Error('there are not two workers')
  return [a, b]
}

async function expectReply(status: number, asked: Promise<Reply>): Promise<Reply> {
  const reply = await asked
  expect({ status: reply.status, text: reply.text }).toEqual({ status, text: status < 400 ? '' : expect.anything() })
  return reply
}

async function openSession(client: PinnedClient): Promise<string> {
  return (await expectReply(202, client.ask('POST', `/v2/${repository}/blobs/uploads/`, { body: '' }))).location
}

/** A process that has ended may still be listed, until its parent takes notice. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

describe('an upload', () => {
  test('changes the worker at every request', async () => {
    const berth = await startWorkers()
    const clients = await twoClients(berth)
    const session = await openSession(clients[0])

    for (const [index, first] of [0, 200_000, 400_000, 600_000].entries()) {
      const client = clients[(index + 1) % 2] as PinnedClient
      const headers = { 'content-range': `${first}-${first + 199_999}` }
      await expectReply(202, client.ask('PATCH', session, { headers, body: whole.subarray(first, first + 200_000) }))
    }
    const path = `${session}?digest=${digestOf(whole)}`
    await expectReply(201, clients[1].ask('PUT', path, { body: whole.subarray(800_000) }))

    expect(await checkBlob(berth, repository, digestOf(whole))).toBe('whole')
  })

  test('continues at another worker although the first request looks alive to its own worker', async () => {
    const berth = await startWorkers()
    const [a, b] = await twoClients(berth)
    const session = await openSession(a)
    // Its client sends no more, as after a broken connection that nobody has noticed.
    const broken = a.ask('PATCH', session, { body: whole, onlyFirstBytes: 100_000 }).catch(() => undefined)
    await until('it waits for its client', async () => (await b.ask('GET', session)).status === 204)
    await Bun.sleep(1_100)

    const next = await expectReply(202, b.ask('PATCH', session, { body: '' }))
    const received = next.range === '0-0' ? 0 : Number(next.range.slice(2)) + 1
    const path = `${session}?digest=${digestOf(whole)}`
    await expectReply(201, b.ask('PUT', path, { body: whole.subarray(received) }))

    expect(await checkBlob(berth, repository, digestOf(whole))).toBe('whole')
    a.close()
    await broken
  })
})

describe('kill -9', () => {
  test('of workers under a push load loses nothing, and the others continue', async () => {
    const berth = await startWorkers({ BERTH_GARBAGE__EVERY: '200ms', BERTH_GARBAGE__QUARANTINE: '0s' })
    const pushers = new PushingClients()
    let isOver = false
    const pushing = Array.from({ length: 4 }, (_, client) => pushers.pushUntil(berth, client, () => isOver))
    for (let kill = 1; kill <= 5; kill += 1) {
      const [pid = 0, other = 0] = workersOf(berth.pid)
      process.kill(pid, 'SIGKILL')
      const { requests } = pushers.figures
      await until('the other worker continues', () => pushers.figures.requests > requests + 20)
      await until('the worker is replaced', () => !isAlive(pid) && workersOf(berth.pid).length === 2)
      expect(workersOf(berth.pid)).toContain(other)
      await Bun.sleep(200)
    }
    isOver = true
    await Promise.all(pushing)

    expect(await pushers.findLosses(berth)).toEqual([])
    expect(pushers.figures.failures).toEqual([])
    expect(berth.output().match(/a worker ended and is replaced/g)).toHaveLength(5)
    await berth.stop()
    started.length = 0
  }, 60_000)

  test('of a worker in the middle of an upload lets another worker continue at once', async () => {
    const berth = await startWorkers()
    const clients = await PinnedClient.forEachWorker(berth)
    const [[pid, a], [, b]] = [...clients] as [[number, PinnedClient], [number, PinnedClient]]
    const session = await openSession(b)
    await expectReply(202, b.ask('PATCH', session, { body: whole.subarray(0, 300_000) }))
    const broken = a.ask('PATCH', session, { body: whole.subarray(300_000), onlyFirstBytes: 1_000 }).catch(() => 'cut')
    await Bun.sleep(300)

    process.kill(pid, 'SIGKILL')
    expect(await broken).toBe('cut')
    await until('the turn of the killed worker has ended', async () => {
      const headers = { 'content-range': '300000-399999' }
      return (await b.ask('PATCH', session, { headers, body: whole.subarray(300_000, 400_000) })).status === 202
    })
    await expectReply(201, b.ask('PUT', `${session}?digest=${digestOf(whole)}`, { body: whole.subarray(400_000) }))

    expect(await checkBlob(berth, repository, digestOf(whole))).toBe('whole')
  })

  test('of a worker that cannot be replaced yet leaves no processes of failed starts', async () => {
    const berth = await startWorkers()
    const [blobs, away] = [join(berth.dataDir, 'blobs'), join(berth.dataDir, 'away')]
    renameSync(blobs, away)
    writeFileSync(blobs, 'a file in the place of the folder')
    process.kill(workersOf(berth.pid)[0] ?? 0, 'SIGKILL')
    await until('several starts have failed', () => berth.output().split('a worker could not start').length > 3)
    expect(workersOf(berth.pid).length).toBeLessThanOrEqual(2)

    rmSync(blobs)
    renameSync(away, blobs)
    expect(await twoClients(berth)).toHaveLength(2)
  })

  test('of the supervisor ends all workers, and the next server starts at once', async () => {
    const dataDir = temporaryFolder()
    const berth = await startWorkers({}, dataDir)
    started.length = 0
    const pids = workersOf(berth.pid)
    const image = await pushImage(berth, repository, 'v1', [generatedBytes(5_000, 1)])
    await berth.kill()

    const port = new URL(berth.url).port
    const next = await startWorkers({ BERTH_SERVER__PORT: port }, dataDir)

    // The new server waits for their locks, which a process releases shortly before its end.
    await until('the former workers have ended', () => !pids.some(isAlive))
    expect(await checkBlob(next, repository, image.blobs[1] ?? '')).toBe('whole')
    expect(await next.stop()).toBe(0)
    started.length = 0
    expect(await auditStores(dataDir)).toEqual([])
  })
})

test('a worker that hangs is killed and replaced', async () => {
  const berth = await startWorkers()
  const [a, b] = await twoClients(berth)
  const hanging = a.findWorker() ?? 0
  process.kill(hanging, 'SIGSTOP')
  const answer = a.ask('GET', '/healthz').catch(() => 'cut')
  expect(await Promise.race([answer, b.ask('GET', '/healthz')])).toMatchObject({ status: 200 })

  expect(await answer).toBe('cut')
  expect(berth.output()).toContain('a worker does not answer and is killed')
  const successors = [...(await PinnedClient.forEachWorker(berth)).keys()]
  expect([successors.length, successors.includes(hanging)]).toEqual([2, false])
}, 60_000)

test('SIGTERM lets the requests of all workers end, and then ends all processes', async () => {
  const berth = await startWorkers()
  started.length = 0
  const pids = workersOf(berth.pid)
  const layers = Array.from({ length: 8 }, (_, n) => generatedBytes(4_000_000, n))
  const pushes = layers.map((bytes) => pushBlob(berth, repository, bytes).catch(String))
  await until('requests are running', () => countRows(berth.dataDir, 'uploads') > 0)
  const [code, ...results] = await Promise.all([berth.stop(), ...pushes])

  expect(code).toBe(0)
  // A connection that no worker had accepted yet is refused. What was accepted is answered.
  for (const [index, result] of results.entries()) {
    if (result !== digestOf(layers[index] as Uint8Array)) expect(result).toMatch(/connect|socket|closed|ECONN/i)
  }
  expect(results.some((result) => String(result).startsWith('sha256:'))).toBe(true)
  expect(pids.filter(isAlive)).toEqual([])
})

test('a second server with workers on the same port does not start', async () => {
  const berth = await startWorkers()
  const port = new URL(berth.url).port
  const second = startBerth({ settings: { ...workers, BERTH_SERVER__PORT: port } })
  const outcome = await second.then(
    async (server) => `started, and ended with ${await server.stop()}`,
    (error: unknown) => String(error),
  )

  expect(outcome).toContain('another process already uses this port')
})

describe('callers', () => {
  test('lose a revoked key at all workers before the answer', async () => {
    const berth = await startWorkers({ BERTH_IDENTITY__CACHE: '60s', BERTH_AUTH__FAILURE_BURST: '1000' })
    const [a, b] = await twoClients(berth)
    const identity = '/api/2021-02-21'
    const json = { 'content-type': 'application/json' }
    for (let round = 0; round < 20; round += 1) {
      const path = `${identity}/users/admin/keys`
      const created = await a.ask('POST', path, { headers: json, body: JSON.stringify({ name: `k${round}` }) })
      const { key } = JSON.parse(created.text) as { key: string }
      const headers = { 'x-api-key': key }
      expect([
        (await a.ask('GET', '/v2/', { headers })).status,
        (await b.ask('GET', '/v2/', { headers })).status,
      ]).toEqual([200, 200])

      await expectReply(204, a.ask('DELETE', `${path}/k${round}`))

      expect((await b.ask('GET', '/v2/', { headers })).status).toBe(401)
      expect((await a.ask('GET', '/v2/', { headers })).status).toBe(401)
    }
  })

  test('cannot use a revoked key at a worker that hung meanwhile', async () => {
    const berth = await startWorkers()
    const [a, b] = await twoClients(berth)
    const path = '/api/2021-02-21/users/admin/keys'
    const headers = { 'content-type': 'application/json' }
    await a.ask('POST', path, { headers, body: JSON.stringify({ name: 'k' }) })
    const hanging = b.findWorker() ?? 0
    process.kill(hanging, 'SIGSTOP')

    await expectReply(204, a.ask('DELETE', `${path}/k`))
    expect(isAlive(hanging)).toBe(false)
  }, 60_000)

  test('have one limit for failed logins at all workers together', async () => {
    const burst = 6
    const berth = await startWorkers({ BERTH_AUTH__FAILURE_BURST: String(burst), BERTH_AUTH__FAILURES_PER_MINUTE: '1' })
    const clients = await twoClients(berth)
    const guess = (n: number) => {
      const headers = { 'x-api-key': `guess_${n}_${'x'.repeat(30)}` }
      return (clients[n % 2] as PinnedClient).ask('GET', '/v2/', { headers })
    }
    const statuses: number[] = []
    for (let n = 0; n < 4 * burst; n += 1) statuses.push((await guess(n)).status)

    expect(statuses.filter((status) => status === 401)).toHaveLength(burst)
    expect(statuses.slice(burst)).toEqual(Array.from({ length: 3 * burst }, () => 429))
  })

  test('that guess at the same time are not checked more often than the limit allows', async () => {
    const burst = 6
    const berth = await startWorkers({ BERTH_AUTH__FAILURE_BURST: String(burst), BERTH_AUTH__FAILURES_PER_MINUTE: '1' })
    const guesses = Array.from({ length: 60 }, async (_, n) => {
      const credentials = btoa(`user-${n}:wrong password ${n}`)
      const headers = { authorization: `Basic ${credentials}`, connection: 'close' }
      return (await fetch(`${berth.url}/v2/`, { headers })).status
    })

    const statuses = await Promise.all(guesses)
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(burst)
    expect(statuses).toContain(429)
  })
})

test('the log has one whole line for each request', async () => {
  const berth = await startWorkers()
  const clients = await twoClients(berth)
  const requests = 3_000
  const before = berth.output().length
  const load = async (client: PinnedClient) => {
    for (let n = 0; n < requests / 2; n += 1) await client.ask('GET', `/v2/${repository}/tags/list?n=${n % 50}`)
  }
  await Promise.all(clients.map(load))
  await berth.stop()
  started.length = 0

  const lines = berth.output().slice(before).trim().split('\n')
  const parsed = lines.map((line) => JSON.parse(line) as { readonly path?: string })
  expect(parsed.filter(({ path }) => path?.endsWith('/tags/list'))).toHaveLength(requests)
}, 60_000)
