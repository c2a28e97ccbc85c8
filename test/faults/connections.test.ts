// More connections than the server may have. Without a limit it accepts them until no descriptor is left, and then spins.
import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import { ask, expectStatus, pushBlob } from '../support/clients/registry-client.ts'
import { beginDownload } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'

const large = generatedBytes(16 * 1024 * 1024, 1)

const berth = useRunning(() => startBerth({ settings: { BERTH_SERVER__CONNECTIONS_MAX: '60' } }))
const limited = useRunning(() => startBerth({ descriptorsMax: 256, settings: { BERTH_SERVER__IDLE: '8s' } }))

/** A connection that sends nothing; undefined when it is refused. */
function open(berth: BerthProcess): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(berth.url).port), '127.0.0.1', () => resolve(socket))
    socket.on('error', () => resolve(undefined))
  })
}

test('too many connections are refused, open requests continue, and new connections are served when others have ended', async () => {
  await pushBlob(berth, 'a/app', large)
  const download = await beginDownload(berth, `/v2/a/app/blobs/${digestOf(large)}`)
  const idle: Socket[] = []

  await until('a connection is refused', async () => {
    const more = await Promise.all(Array.from({ length: 20 }, () => open(berth)))
    idle.push(...more.filter((socket) => socket !== undefined))
    return more.includes(undefined)
  })

  const answer = await download.readToEnd()
  expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
  for (const socket of idle) socket.destroy()
  await until('the port is open again', async () => {
    const asked = ask(berth, 'GET', '/v2/', { headers: { connection: 'close' } })
    return asked.then(({ status }) => status === 200).catch(() => false)
  })
  await expectStatus(200, ask(berth, 'GET', '/v2/_catalog'))
  expect(berth.output().match(/too many open descriptors/g)).toHaveLength(1)
})

test('more idle connections than the process has descriptors end, and the server answers again', async () => {
  const idle = await Promise.all(Array.from({ length: 400 }, () => open(limited)))
  const healthy = () =>
    fetch(`${limited.url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until('the port is closed', async () => !(await healthy()))

  await until('/healthz answers', healthy)

  // Standard output is a pipe, and files can be opened again.
  await pushBlob(limited, 'a/app', large)
  expect(limited.output()).toContain('raise `ulimit -n` or see server.connections_max')
  for (const socket of idle) socket?.destroy()
}, 60_000)
