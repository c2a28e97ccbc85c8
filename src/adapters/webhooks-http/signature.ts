/** The prefix of a secret in Standard Webhooks. The key follows in base64. */
const secretPrefix = 'whsec_'

/** The headers of Standard Webhooks 1.0.0: an HMAC-SHA256 over the id, the time and the body. */
export function signatureHeaders(
  { id, body, secret }: { readonly id: string; readonly body: string; readonly secret: string },
  nowMs: number,
): Readonly<Record<string, string>> {
  const seconds = Math.floor(nowMs / 1000)
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64')
  const signature = new Bun.CryptoHasher('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` }
}
