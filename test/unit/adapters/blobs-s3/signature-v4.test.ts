// The signature against the examples of the S3 documentation, and against what another implementation signed.
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { S3Credentials } from '../../../../src/adapters/blobs-s3/signature-v4.ts'
import {
  emptyPayloadHash,
  encodePath,
  encodeQuery,
  encodeText,
  S3Address,
  SignatureV4,
} from '../../../../src/adapters/blobs-s3/signature-v4.ts'

/** "Signature Calculations for the Authorization Header", "Authenticating Requests: Using Query Parameters". */
const example: S3Credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  sessionToken: undefined,
  expiresAt: undefined,
}
const exampleTime = Date.UTC(2013, 4, 24)
const host = 'examplebucket.s3.amazonaws.com'

function signatureIn(authorization: string | undefined): string | undefined {
  return /Signature=([0-9a-f]{64})$/.exec(authorization ?? '')?.[1]
}

describe('the examples of the documentation', () => {
  const signature = new SignatureV4('us-east-1')
  const sign = (request: Partial<Parameters<SignatureV4['sign']>[0]>) =>
    signature.sign(
      {
        method: 'GET',
        path: '/',
        query: '',
        payloadHash: emptyPayloadHash,
        ...request,
        headers: { host, ...request.headers },
      },
      example,
      exampleTime,
    )

  test('GET of a range', () => {
    const headers = sign({ path: '/test.txt', headers: { range: 'bytes=0-9' } })
    expect(headers).toEqual({
      host,
      range: 'bytes=0-9',
      'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      'x-amz-date': '20130524T000000Z',
      authorization:
        'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;' +
        'x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    })
  })

  test('PUT of an object', () => {
    const headers = sign({
      method: 'PUT',
      path: `/${encodePath('test$file.text')}`,
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      payloadHash: Bun.CryptoHasher.hash('sha256', 'Welcome to Amazon S3.', 'hex'),
    })
    expect(signatureIn(headers['authorization'])).toBe(
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    )
  })

  test('GET of a parameter without a value', () => {
    expect(signatureIn(sign({ query: encodeQuery([['lifecycle', '']]) })['authorization'])).toBe(
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    )
  })

  test('a list', () => {
    const query = encodeQuery([
      ['prefix', 'J'],
      ['max-keys', '2'],
    ])
    expect(signatureIn(sign({ query })['authorization'])).toBe(
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    )
  })

  test('a presigned address', () => {
    expect(signature.presign(host, '/test.txt', example, exampleTime, 86_400)).toBe(
      'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request' +
        '&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host' +
        '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
    )
  })
})

interface Vector {
  readonly kind: 'headers' | 'presigned'
  readonly endpoint: string
  readonly bucket: string
  readonly isPathStyle: boolean
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | null
  readonly timeMs: number
  readonly name: string
  readonly method: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly lifetimeSeconds: number
  readonly expected: string
}

const vectors: Vector[] = readFileSync(join(import.meta.dir, 'signature-vectors.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))

function credentialsOf({ accessKeyId, secretAccessKey, sessionToken }: Vector): S3Credentials {
  return { accessKeyId, secretAccessKey, sessionToken: sessionToken ?? undefined, expiresAt: undefined }
}

function authorizationOf(vector: Vector): string | undefined {
  const { host, path } = new S3Address(vector).urlOf(vector.name)
  const signable = {
    method: vector.method,
    path,
    query: encodeQuery(Object.entries(vector.query)),
    headers: { host, ...vector.headers },
    payloadHash: Bun.CryptoHasher.hash('sha256', vector.body, 'hex'),
  }
  return new SignatureV4(vector.region).sign(signable, credentialsOf(vector), vector.timeMs)['authorization']
}

/** The order of the parameters is the signer's own business; that of the canonical request is not, and is in the signature. */
function parametersOf(url: string): { readonly place: string; readonly parameters: readonly string[] } {
  const [place = '', query = ''] = url.split('?')
  return { place, parameters: query.split('&').sort() }
}

/** botocore signs a query in the order in which it sends it, hence the token behind the headers; S3 sorts. */
describe('what botocore signed', () => {
  test('the vectors are there', () => {
    const kinds = vectors.map(({ kind }) => kind)
    expect([kinds.filter((kind) => kind === 'headers').length, kinds.length]).toEqual([80, 120])
  })

  test('in headers, is signed alike: names, parameters and headers of all kinds of signs', () => {
    for (const vector of vectors.filter(({ kind }) => kind === 'headers')) {
      expect(authorizationOf(vector)).toBe(vector.expected.replaceAll(', ', ','))
    }
  })

  test('in addresses, is signed alike', () => {
    for (const vector of vectors.filter(({ kind }) => kind === 'presigned')) {
      const { url, host, path } = new S3Address(vector).urlOf(vector.name)
      const signature = new SignatureV4(vector.region)
      const query = signature.presign(host, path, credentialsOf(vector), vector.timeMs, vector.lifetimeSeconds)
      expect(parametersOf(`${url}?${query}`)).toEqual(parametersOf(vector.expected))
    }
  })

  test('is not what is signed when any of it is another', () => {
    const vector = vectors.find(({ query }) => Object.keys(query ?? {}).length > 1)
    if (vector === undefined) throw new Error('no vector has parameters')
    const bent: readonly Partial<Vector>[] = [
      { name: `${vector.name}x` },
      { method: 'PATCH' },
      { query: { ...vector.query, more: '' } },
      { headers: { ...vector.headers, 'x-amz-meta-x': '1' } },
      { body: `${vector.body}x` },
      { bucket: 'other-bucket' },
      { region: 'eu-west-1' },
      { secretAccessKey: 'x' },
      { sessionToken: 'x' },
      { timeMs: vector.timeMs + 1_000 },
    ]
    const signed = [vector, ...bent.map((change) => ({ ...vector, ...change }))].map(authorizationOf)
    expect(new Set(signed.map(signatureIn)).size).toBe(bent.length + 1)
  })
})

describe('a signer', () => {
  test('takes another key with another day, and with another secret', () => {
    const signature = new SignatureV4('us-east-1')
    const presign = (credentials: S3Credentials, time: number) => signature.presign(host, '/x', credentials, time, 60)
    const other = { ...example, secretAccessKey: 'other' }
    const day = 86_400_000
    const first = [
      presign(example, exampleTime),
      presign(example, exampleTime + day),
      presign(other, exampleTime + day),
    ]
    expect(new Set(first).size).toBe(3)
    for (const [credentials, time] of [
      [example, exampleTime],
      [example, exampleTime + day],
      [other, exampleTime + day],
    ] as const) {
      expect(new SignatureV4('us-east-1').presign(host, '/x', credentials, time, 60)).toBe(first.shift() ?? '')
    }
  })

  test('encodes all but letters, digits and four signs', () => {
    expect(encodeText("az-._~09/ !'()*+%\u00fc")).toBe('az-._~09%2F%20%21%27%28%29%2A%2B%25%C3%BC')
    expect(encodePath('a b/c')).toBe('a%20b/c')
  })

  test('puts parameters in the order of their encoded bytes', () => {
    const query = encodeQuery([
      ['b', '2'],
      ['b', '1'],
      ['\u00fc', ''],
      ['a-', ''],
      ['a', ''],
      ['B', ''],
    ])
    expect(query).toBe('%C3%BC=&B=&a=&a-=&b=1&b=2')
  })
})
