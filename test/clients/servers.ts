import { type BerthProcess, startBerth } from '../support/berth-process.ts'

/** The server is there once the tests run, not yet when they are declared. */
export type BerthOf = () => BerthProcess

export const wrongKey = 'berth_test_this_key_was_never_given_to_anyone_x'

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

/** A server of its own for one proof that needs other settings. */
export async function withBerth(
  settings: Readonly<Record<string, string>>,
  body: (berth: BerthProcess) => Promise<void>,
): Promise<void> {
  const berth = await startBerth({ settings })
  try {
    await body(berth)
  } finally {
    await berth.stop()
  }
}
