// The command and real servers: a registry is moved while clients push and pull. No acknowledged push is lost, no pull
// fails, and every credential is still valid.
import { afterAll, describe, expect, test } from 'bun:test'
import { testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { testAdminPassword } from '../support/basics/test-project.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { ask, expectStatus, jsonOf, pushImage, type Target } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { type Place, placeIn, placeOnServers, runMove } from '../support/moves/move-command.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'

const newFolder = useTemporaryFolders('move')
const identity = '/api/2021-02-21'
const service = '/api/2023-12-28'
const running: BerthProcess[] = []

// For tests that failed.
afterAll(async () => {
  for (const server of running) await server.kill()
})

const quiet = { BERTH_IDENTITY__CACHE: '0s', BERTH_GARBAGE__LEASE: '1h' }

async function serve(place: Place): Promise<BerthProcess> {
  const server = await startBerth({ dataDir: place.dataDir, settings: { ...quiet, ...place.settings } })
  running.push(server)
  return server
}

async function stop(server: BerthProcess): Promise<void> {
  running.splice(running.indexOf(server), 1)
  expect(await server.stop()).toBe(0)
}

const json = (body: unknown) => ({ body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })

function logIn(server: Target, username: string, password: string): Promise<Response> {
  return fetch(`${server.url}${identity}/token/auth`, { method: 'POST', ...json({ username, password }) })
}

const password = 'a password of ann'

/** Adds a user with an API key and a token. */
async function addReader(server: BerthProcess) {
  const user = { name: 'ann', roles: ['reader'], password }
  await expectStatus(201, ask(server, 'POST', `${identity}/users`, json(user)))
  const keys = await expectStatus(201, ask(server, 'POST', `${identity}/users/ann/keys`, json({ name: 'laptop' })))
  const { key } = (await keys.json()) as { key: string }
  const { access_token: token } = (await (await logIn(server, 'ann', password)).json()) as { access_token: string }
  return { key, token }
}

/** The answers to the key, the token, the password and a wrong key. */
async function statusesOf(server: Target, { key, token }: { key: string; token: string }): Promise<readonly number[]> {
  const pull = (headers: Record<string, string>) => fetch(`${server.url}/v2/read/app/tags/list`, { headers })
  const answers = await Promise.all([
    pull({ 'x-api-key': key }),
    pull({ authorization: `Bearer ${token}` }),
    logIn(server, 'ann', password),
    pull({ 'x-api-key': `${key}x` }),
  ])
  return answers.map((answer) => answer.status)
}

/** Pulls the same image until it is stopped. Every status but 200 is a failure. */
function pullAllTheTime(server: Target, paths: readonly string[]) {
  let isOver = false
  let pulls = 0
  const failures: string[] = []
  const end = (async () => {
    while (!isOver) {
      for (const path of paths) {
        const answer = await ask(server, 'GET', path)
        await answer.arrayBuffer()
        pulls += 1
        if (answer.status !== 200) failures.push(`${path}: ${answer.status}`)
      }
    }
  })()
  return {
    async stop() {
      isOver = true
      await end
      return { pulls, failures }
    },
  }
}

async function moveUnderLoad(from: Place, to: Place): Promise<void> {
  const old = await serve(from)
  const ledger = new PushingClients({ triesMax: 1, seed: 7 })
  let isOver = false
  const pushing = [0, 1].map((client) => ledger.pushUntil(old, client, () => isOver))
  const image = await pushImage(old, 'read/app', 'v1', [new TextEncoder().encode('a layer that is read')])
  const blobs = image.blobs.map((digest) => `/v2/read/app/blobs/${digest}`)
  const reading = ['/v2/read/app/manifests/v1', '/v2/read/app/tags/list', '/v2/_catalog', ...blobs]
  const pulling = pullAllTheTime(old, reading)
  const reader = await addReader(old)
  await until('something has been pushed', () => ledger.size.manifests > 5)

  expect(await runMove(from, to, '--prepare')).toMatchObject({ exitCode: 0 })
  const prepared = ledger.size.manifests
  await until('pushes go on after the preparation', () => ledger.size.manifests > prepared + 2)
  const { exitCode, stdout, stderr } = await runMove(from, to)
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('accepts no changes')])
  expect(stdout).toMatch(/^moved \d+ manifests, \d+ tags, \d+ blobs and 2 users\n/)

  // A push that was acknowledged from now on would be lost.
  const atTheEnd = ledger.size.manifests
  await Bun.sleep(200)
  expect(ledger.size.manifests).toBe(atTheEnd)
  isOver = true
  await Promise.all(pushing)
  const { pulls, failures } = await pulling.stop()
  expect([pulls > 20, failures]).toEqual([true, []])

  const moved = await serve(to)
  expect(await ledger.findLosses(moved)).toEqual([])
  expect(await statusesOf(old, reader)).toEqual([200, 200, 200, 401])
  expect(await statusesOf(moved, reader)).toEqual([200, 200, 200, 401])
  for (const path of reading) await expectSame(old, moved, path)
  // The target takes pushes.
  await pushImage(moved, 'read/app', 'v2', [new TextEncoder().encode('a layer that came later')])
  expect(await jsonOf(ask(moved, 'GET', '/v2/read/app/tags/list'))).toMatchObject({ tags: ['v1', 'v2'] })
  await stop(old)
  await stop(moved)
}

async function expectSame(one: Target, other: Target, path: string): Promise<void> {
  const [before, after] = [
    await expectStatus(200, ask(one, 'GET', path)),
    await expectStatus(200, ask(other, 'GET', path)),
  ]
  expect(Buffer.from(await after.arrayBuffer())).toEqual(Buffer.from(await before.arrayBuffer()))
  expect(after.headers.get('docker-content-digest')).toBe(before.headers.get('docker-content-digest'))
}

describe('a registry under load is moved', () => {
  // The adapters of both ends are in the other directions too. CI tries all three (MATRIX=all).
  if (process.env['MATRIX'] === 'all')
    test('from one data folder to another', () => moveUnderLoad(placeIn(newFolder()), placeIn(newFolder())), 60_000)

  testNeeding(
    postgres,
    'from SQLite and files to PostgreSQL and S3',
    async () => moveUnderLoad(placeIn(newFolder()), await placeOnServers(newFolder(), 's3')),
    60_000,
  )

  testNeeding(
    postgres,
    'from PostgreSQL and S3 to SQLite and files',
    async () => moveUnderLoad(await placeOnServers(newFolder(), 's3'), placeIn(newFolder())),
    60_000,
  )
})

test('a push to the source after a forced abort is missing at the target (control)', async () => {
  const [from, to] = [placeIn(newFolder()), placeIn(newFolder())]
  const old = await serve(from)
  const ledger = new PushingClients({ triesMax: 1, seed: 8 })
  const pushSome = async () => {
    const goal = ledger.size.manifests + 2
    await ledger.pushUntil(old, 0, () => ledger.size.manifests >= goal)
  }
  await pushSome()
  expect((await runMove(from, to)).exitCode).toBe(0)
  const moved = await serve(to)
  expect(await ledger.findLosses(moved)).toEqual([])

  expect((await runMove(from, undefined, '--abort', '--force')).exitCode).toBe(0)
  await pushSome()

  expect(await ledger.findLosses(old)).toEqual([])
  expect((await ledger.findLosses(moved)).length).toBeGreaterThan(2)
  await stop(old)
  await stop(moved)
})

describe('a registry that is closed for changes', () => {
  interface Change {
    readonly method: string
    readonly path: string
    readonly body?: string
  }

  test('refuses each change with 503 and Retry-After, answers reads, and accepts changes after --abort', async () => {
    const from = placeIn(newFolder())
    const to = placeIn(newFolder())
    const server = await serve(from)
    const layer = new TextEncoder().encode('layer')
    const { digest, blobs } = await pushImage(server, 'read/app', 'v1', [layer])
    const session = (await expectStatus(202, ask(server, 'POST', '/v2/read/app/blobs/uploads/'))).headers.get(
      'location',
    )
    const changes: readonly Change[] = [
      { method: 'POST', path: '/v2/read/app/blobs/uploads/' },
      { method: 'POST', path: `/v2/other/app/blobs/uploads/?mount=${blobs[1]}&from=read/app` },
      { method: 'PUT', path: `${session}?digest=${blobs[1]}`, body: 'layer' },
      { method: 'DELETE', path: `/v2/read/app/manifests/${digest}` },
      { method: 'DELETE', path: '/v2/read/app/manifests/v1' },
      { method: 'DELETE', path: `/v2/read/app/blobs/${blobs[1]}` },
      { method: 'POST', path: `${service}/disable` },
      { method: 'POST', path: `${service}/enable` },
      { method: 'POST', path: `${identity}/users`, body: '{"name":"late"}' },
      { method: 'PATCH', path: `${identity}/users/admin`, body: '{"roles":["admin"]}' },
      { method: 'POST', path: `${identity}/users/admin/keys`, body: '{"name":"late"}' },
    ]
    const send = ({ method, path, body }: Change) => {
      const headers = { 'content-type': 'application/json' }
      return ask(server, method, path, body === undefined ? {} : { body, headers })
    }
    expect((await runMove(from, to)).exitCode).toBe(0)

    for (const change of changes) {
      const answer = await send(change)
      expect([change.path, answer.status, answer.headers.get('retry-after')]).toEqual([change.path, 503, '5'])
      expect(await answer.text()).toContain('the registry is being moved to other stores and accepts no changes')
    }
    for (const path of ['/v2/read/app/manifests/v1', `/v2/read/app/blobs/${blobs[1]}`, `${identity}/users`]) {
      await expectStatus(200, ask(server, 'GET', path))
    }
    await expectStatus(200, ask(server, 'HEAD', `/v2/read/app/blobs/${blobs[1]}`))
    // Users can still log in.
    expect((await logIn(server, 'admin', testAdminPassword)).status).toBe(200)

    expect(await runMove(from, undefined, '--abort')).toMatchObject({ exitCode: 1 })
    expect(await runMove(from, undefined, '--abort', '--force')).toMatchObject({ exitCode: 0 })
    for (const change of changes.slice(0, 3)) expect((await send(change)).status).toBeOneOf([201, 202])
    expect((await send(changes[8] as Change)).status).toBe(201)
    await stop(server)
  })
})
