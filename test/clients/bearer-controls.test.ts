// Bearer mode can go wrong in ways that a client must notice. Each is provoked here, and then a push must fail: so a push
// that succeeds elsewhere has got a token that was worth something.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { CommandResult } from '../support/basics/command.ts'
import type { BerthProcess } from '../support/server/berth-process.ts'
import { hasTools, hookTimeoutMs } from './client-suite.ts'
import { ContainerdRun } from './containerd.ts'
import { DockerRun } from './docker-run.ts'
import { Servers } from './servers.ts'
import { SkopeoRun } from './skopeo-run.ts'
import { startTamperingProxy, type Tampering } from './tampering-proxy.ts'

/** A client that pushes an image of its own with the right API key. */
interface Pusher {
  push(berth: BerthProcess): Promise<CommandResult>
  stop(): Promise<void>
}

async function skopeo(): Promise<Pusher> {
  let target: BerthProcess | undefined
  const run = new SkopeoRun(() => target ?? unreachable())
  return {
    push(berth) {
      target = berth
      const flags = ['--dest-tls-verify=false', '--dest-creds', `apikey:${berth.apiKey}`]
      return run.attempt('copy', ...flags, run.local('single'), run.remote('controls/app:1'))
    },
    stop: () => run.stop(),
  }
}

async function containerd(): Promise<Pusher> {
  const run = await ContainerdRun.start(servers.shared(), '')
  return {
    async push(berth) {
      await run.nameServer(berth)
      return run.push(run.access(berth.apiKey), `${berth.host}/controls/app:1`, 'made:single')
    },
    stop: () => run.stop(),
  }
}

async function docker(): Promise<Pusher> {
  const engine = await DockerRun.start(() => servers.shared())
  return {
    async push(berth) {
      const run = engine.at(berth)
      // By hand, because a login would fail first.
      const auths = { [berth.host]: { auth: btoa(`apikey:${berth.apiKey}`) } }
      await Bun.write(run.workspace.path('docker-config/config.json'), JSON.stringify({ auths }))
      await run.load(run.remote('controls/app:1'))
      return run.workspace.run(run.argv('push', run.remote('controls/app:1')), { mayFail: true })
    },
    stop: () => engine.stop(),
  }
}

function unreachable(): never {
  throw new Error('no server was named')
}

const servers = new Servers('bearer')
let foreign: BerthProcess
beforeAll(async () => {
  await servers.start()
  foreign = await servers.startOther({})
}, hookTimeoutMs)
afterAll(async () => {
  await servers.stop()
  await foreign.stop()
}, hookTimeoutMs)

/** What is spoilt, and what the clients say of it, each in its own words. */
const spoilt: readonly (readonly [string, () => Tampering, RegExp])[] = [
  ['issues tokens without rights', () => ({ dropsScopes: true }), /denied|insufficient_scope/],
  ['issues tokens that another server has signed', () => ({ tokensFrom: foreign }), /unauthorized|invalid_token/],
  [
    'sends its clients to a place that issues no tokens',
    () => ({ toChallenge: (challenge) => challenge.replace('/_token"', '/_nothing"') }),
    /404|no such endpoint/,
  ],
]

const clients = [
  ['skopeo', ['skopeo'], skopeo],
  ['containerd', ['containerd', 'ctr', 'tar'], containerd],
  ['docker engine', ['docker', 'dockerd', 'containerd', 'runc', 'tar'], docker],
] as const

describe.each(clients)('%s', (client, tools, start) => {
  if (!hasTools({ client: `the control run of ${client}`, tools })) return
  let pusher: Pusher
  beforeAll(async () => {
    pusher = await start()
  }, hookTimeoutMs)
  afterAll(() => pusher.stop(), hookTimeoutMs)

  async function pushThrough(tampering: Tampering): Promise<CommandResult & { readonly tokenRequests: number }> {
    const proxy = startTamperingProxy(servers.shared(), tampering)
    try {
      return { ...(await pusher.push(proxy.berth)), tokenRequests: proxy.tokenRequests() }
    } finally {
      await proxy.stop()
    }
  }

  test.each(spoilt)(
    'cannot push to a server that %s',
    async (_, tampering, words) => {
      const { code, output, tokenRequests } = await pushThrough(tampering())

      expect(code).not.toBe(0)
      expect(output).toMatch(words)
      if (tampering().toChallenge === undefined) expect(tokenRequests).toBeGreaterThan(0)
    },
    120_000,
  )

  test('pushes through the same proxy where it changes nothing', async () => {
    const { code, output, tokenRequests } = await pushThrough({})

    expect({ code, output }).toEqual({ code: 0, output })
    expect(tokenRequests).toBeGreaterThan(0)
  }, 120_000)
})
