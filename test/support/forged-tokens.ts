// Tokens that look like ours and are not: each must be refused by whoever verifies ours.
import { generateKeyPair, SignJWT } from 'jose'

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The parts of a token. */
function partsOf(token: string): {
  header: Record<string, unknown>
  claims: Record<string, unknown>
  signature: string
} {
  const [header = '', claims = '', signature = ''] = token.split('.')
  const decode = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString())
  return { header: decode(header), claims: decode(claims), signature }
}

/** Everything that somebody may try who has one good token and the public key, by what he tries. */
export async function forgedTokens(good: string, publicJwk: Record<string, unknown>): Promise<Record<string, string>> {
  const { header, claims, signature } = partsOf(good)
  const payload = encode(claims)
  const stranger = await generateKeyPair('EdDSA', { extractable: true })
  const strangersJwk = await crypto.subtle.exportKey('jwk', stranger.publicKey as CryptoKey)
  const sign = (more: Record<string, unknown>) =>
    new SignJWT(claims).setProtectedHeader({ ...header, alg: 'EdDSA', ...more }).sign(stranger.privateKey)
  const hmac = (key: string, alg = 'HS256') => {
    const signed = `${encode({ ...header, alg })}.${payload}`
    return `${signed}.${new Bun.CryptoHasher('sha256', key).update(signed).digest('base64url')}`
  }
  const withHeader = (more: Record<string, unknown>) => `${encode({ ...header, ...more })}.${payload}.${signature}`
  return {
    'of another key': await sign({}),
    'of another key that names itself in a jwk header': await sign({ jwk: strangersJwk }),
    'of another key that names an address in a jku header': await sign({ jku: 'http://127.0.0.1:1/keys' }),
    'without a signature': `${encode(header)}.${payload}.`,
    'of algorithm none': `${encode({ ...header, alg: 'none' })}.${payload}.`,
    'of algorithm None': `${encode({ ...header, alg: 'None' })}.${payload}.`,
    'of algorithm none with a signature': withHeader({ alg: 'none' }),
    'of HS256 with the public key as its secret': hmac(String(publicJwk['x'])),
    'of HS256 with the public JWK as its secret': hmac(JSON.stringify(publicJwk)),
    'of HS256 with an empty secret': hmac('\0'),
    'with another algorithm in its header': withHeader({ alg: 'ES256' }),
    'with a critical extension that nobody knows': withHeader({ crit: ['x'], x: 1 }),
    'with other claims': `${encode(header)}.${encode({ ...claims, sub: 'root' })}.${signature}`,
    'with a later end': `${encode(header)}.${encode({ ...claims, exp: 9_999_999_999 })}.${signature}`,
    'cut short': good.slice(0, -4),
    'with something behind it': `${good}.x`,
    'in five parts': `${good}.x.y`,
    twice: `${good}${good}`,
    'of no token at all': 'not a token',
    'of nothing': '',
    'of two dots': '..',
    'far too long': `${good}${'A'.repeat(100_000)}`,
  }
}
