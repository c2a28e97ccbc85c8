import { startBalancedReplicas } from '../support/replicas/replicas.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'

export const challenges = ['basic', 'bearer'] as const

/** `auth.challenge`: whether clients send their credentials with each request, or get tokens with them. */
export type Challenge = (typeof challenges)[number]

type Settings = Readonly<Record<string, string>>

/** TEST_TOPOLOGY=replicas: two of them on PostgreSQL and S3 behind an nginx, in the place of each single server. */
const topology = process.env['TEST_TOPOLOGY'] ?? 'one'
if (topology !== 'one' && topology !== 'replicas') throw new Error(`TEST_TOPOLOGY must be one or replicas`)

/** The server is there once the tests run, not yet when they are declared. */
export type BerthOf = () => BerthProcess

/** The servers of one challenge: the one that most proofs share, and others with settings of their own. */
export class Servers {
  readonly challenge: Challenge
  #shared: BerthProcess | undefined

  constructor(challenge: Challenge) {
    this.challenge = challenge
  }

  readonly shared: BerthOf = () => {
    if (this.#shared === undefined) throw new Error('Berth did not start')
    return this.#shared
  }

  async start(): Promise<void> {
    this.#shared = await this.startOther({})
  }

  async stop(): Promise<void> {
    await this.#shared?.stop()
  }

  startOther(settings: Settings): Promise<BerthProcess> {
    const asked = { BERTH_AUTH__CHALLENGE: this.challenge, ...settings }
    return topology === 'replicas' ? startBalancedReplicas(asked) : startBerth({ settings: asked })
  }

  async withOther(settings: Settings, body: (berth: BerthProcess) => Promise<void>): Promise<void> {
    const berth = await this.startOther(settings)
    try {
      await body(berth)
    } finally {
      await berth.stop()
    }
  }
}

/** A new wrong key each time: a client that repeats the same one is delayed after a while. */
export function wrongKey(): string {
  return `berth_test_never_given_to_anyone_${crypto.randomUUID()}`
}

/** A user name, what goes with it, and how the two are called. The last stays logged in for the proofs that follow. */
export const logins = [
  ['admin', async (berth: BerthProcess) => berth.adminPassword, 'a user with the password'],
  ['admin', async (berth: BerthProcess) => berth.apiKey, 'a user with a key'],
  ['bearer', bearerToken, 'bearer'],
  ['apikey', async (berth: BerthProcess) => berth.apiKey, 'apikey'],
] as const

/** An access token for the first user, as the identity service gives it for a password. */
export async function bearerToken(berth: BerthProcess): Promise<string> {
  const answer = await fetch(`${berth.url}/api/2021-02-21/token/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: berth.adminPassword }),
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${text}`)
  const { access_token: token }: { access_token: string } = JSON.parse(text)
  return token
}
