// Tokens that look like those of Berth and are forged: every verifier must refuse each of them.
import { createPublicKey } from 'node:crypto'
import { generateKeyPair, SignJWT } from 'jose'

function encode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
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

/** Every forgery that is possible with one good token and the public key, by name. */
export async function forgedTokens(good: string, publicJwk: Record<string, unknown>): Promise<Record<string, string>> {
  return {
    ...(await signedByAnother(good)),
    ...signedByAPublicKey(good, publicJwk),
    ...unsigned(good),
    ...withAnotherHeader(good),
    ...withOtherClaims(good),
    ...misshapen(good),
  }
}

/** The key is the forger's own, and the header says where to find it. */
async function signedByAnother(good: string): Promise<Record<string, string>> {
  const { header, claims } = partsOf(good)
  const foreign = await generateKeyPair('EdDSA', { extractable: true })
  const jwk = await crypto.subtle.exportKey('jwk', foreign.publicKey)
  const kid = String(header['kid'])
  const signText = async (headerText: string, claimsText = JSON.stringify(claims)) => {
    const signed = `${encode(headerText)}.${encode(claimsText)}`
    const signature = await crypto.subtle.sign('Ed25519', foreign.privateKey, Buffer.from(signed))
    return `${signed}.${Buffer.from(signature).toString('base64url')}`
  }
  const sign = (more: Record<string, unknown>) => signText(JSON.stringify({ ...header, ...more }))
  const url = 'http://127.0.0.1:1/keys'
  const { kid: _kid, ...nameless } = header
  return {
    'of another key': await sign({}),
    'of another key, signed by a library': await new SignJWT(claims)
      .setProtectedHeader({ ...header, alg: 'EdDSA' })
      .sign(foreign.privateKey),
    'of another key that names itself in a jwk header': await sign({ jwk }),
    'of another key that names an address in a jku header': await sign({ jku: url }),
    'of another key that names an address in an x5u header': await sign({ x5u: url }),
    'of another key that names a certificate': await sign({ x5c: ['AAAA'] }),
    'of another key without a name': await signText(JSON.stringify(nameless)),
    'of another key with an empty name': await sign({ kid: '' }),
    'of another key with a path for its name': await sign({ kid: `../identity/${kid}` }),
    'of another key with a name that is a query': await sign({ kid: `${kid}' OR '1'='1` }),
    'of another key with the name of a member of every object': await sign({ kid: '__proto__' }),
    'of another key with a list for its name': await sign({ kid: [kid] }),
    'of another key with a number for its name': await sign({ kid: 0 }),
    'of another key with null for its name': await sign({ kid: null }),
    'of another key with Ed25519 for its algorithm': await sign({ alg: 'Ed25519' }),
    'of another key with two algorithms': await signText(`{"alg":"none","typ":"JWT","kid":"${kid}","alg":"EdDSA"}`),
    'of another key with none for its second algorithm': await signText(
      `{"alg":"EdDSA","typ":"JWT","kid":"${kid}","alg":"none"}`,
    ),
    'of another key with two names': await signText(`{"alg":"EdDSA","typ":"JWT","kid":"x","kid":"${kid}"}`),
  }
}

/** What is public, taken for a secret. */
function signedByAPublicKey(good: string, publicJwk: Record<string, unknown>): Record<string, string> {
  const { header, claims } = partsOf(good)
  const { kty, crv, x } = publicJwk
  const pem = createPublicKey({ key: { kty: String(kty), crv: String(crv), x: String(x) }, format: 'jwk' })
    .export({ type: 'spki', format: 'pem' })
    .toString()
  const hmac = (key: string | Buffer, alg = 'HS256') => {
    const signed = `${encode({ ...header, alg })}.${encode(claims)}`
    const hash = alg === 'HS512' ? 'sha512' : 'sha256'
    return `${signed}.${new Bun.CryptoHasher(hash, key).update(signed).digest('base64url')}`
  }
  return {
    'of HS256 with the public key as its secret': hmac(String(x)),
    'of HS256 with the bytes of the public key as its secret': hmac(Buffer.from(String(x), 'base64url')),
    'of HS256 with the public JWK as its secret': hmac(JSON.stringify(publicJwk)),
    'of HS256 with the public PEM as its secret': hmac(pem),
    'of HS512 with the public PEM as its secret': hmac(pem, 'HS512'),
    'of HS256 with the name of the key as its secret': hmac(String(header['kid'])),
    'of HS256 with an empty secret': hmac('\0'),
  }
}

function unsigned(good: string): Record<string, string> {
  const { header, claims, signature } = partsOf(good)
  const payload = encode(claims)
  const { alg: _alg, ...without } = header
  return {
    'without a signature': `${encode(header)}.${payload}.`,
    'of algorithm none': `${encode({ ...header, alg: 'none' })}.${payload}.`,
    'of algorithm None': `${encode({ ...header, alg: 'None' })}.${payload}.`,
    'of algorithm NONE': `${encode({ ...header, alg: 'NONE' })}.${payload}.`,
    'of no algorithm': `${encode(without)}.${payload}.`,
    'of an empty algorithm': `${encode({ ...header, alg: '' })}.${payload}.`,
    'of algorithm none with a signature': `${encode({ ...header, alg: 'none' })}.${payload}.${signature}`,
    'with a signature of zeros': `${encode(header)}.${payload}.${'A'.repeat(86)}`,
  }
}

function withAnotherHeader(good: string): Record<string, string> {
  const { header, claims, signature } = partsOf(good)
  const withHeader = (more: unknown) => `${encode(more)}.${encode(claims)}.${signature}`
  return {
    'with another algorithm in its header': withHeader({ ...header, alg: 'ES256' }),
    'with a list of algorithms': withHeader({ ...header, alg: ['EdDSA'] }),
    'with an unknown critical extension': withHeader({ ...header, crit: ['x'], x: 1 }),
    'with an empty list of critical extensions': withHeader({ ...header, crit: [] }),
    'with a payload that is not encoded': withHeader({ ...header, crit: ['b64'], b64: false }),
    'with a header that is a list': withHeader([header]),
    'with a header that is null': withHeader(null),
    'with a header that is no JSON': withHeader('{'),
    'with a header that has a byte order mark': withHeader(`\uFEFF${JSON.stringify(header)}`),
  }
}

function withOtherClaims(good: string): Record<string, string> {
  const { header, claims, signature } = partsOf(good)
  const withClaims = (text: unknown) => `${encode(header)}.${encode(text)}.${signature}`
  return {
    'with other claims': withClaims({ ...claims, sub: 'root' }),
    'with a later end': withClaims({ ...claims, exp: 9_999_999_999 }),
    'with a second subject': withClaims(`${JSON.stringify(claims).slice(0, -1)},"sub":"root"}`),
    'with the same claims in other words': withClaims(JSON.stringify(claims, undefined, 1)),
  }
}

function misshapen(good: string): Record<string, string> {
  const [header = '', payload = '', signature = ''] = good.split('.')
  return {
    'cut short': good.slice(0, -4),
    'with something behind it': `${good}.x`,
    'in five parts': `${good}.x.y`,
    twice: `${good}${good}`,
    'of no token at all': 'not a token',
    'of nothing': '',
    'of two dots': '..',
    'far too long': `${good}${'A'.repeat(100_000)}`,
    'of a million dots': '.'.repeat(1_000_000),
    'in JSON': JSON.stringify({ protected: header, payload, signature }),
    'with its parts in another order': `${payload}.${header}.${signature}`,
  }
}
