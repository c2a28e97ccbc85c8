// The addresses of objects and their signatures, against what another implementation signed.
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { S3Credentials } from '../../../../src/adapters/blobs-s3/signature-v4.ts'
import {
  emptyPayloadHash,
  encodeQuery,
  S3Address,
  SignatureV4,
} from '../../../../src/adapters/blobs-s3/signature-v4.ts'

/** "Signature Calculations for the Authorization Header" in the documentation of S3. */
const example: S3Credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  sessionToken: undefined,
  expiresAt: undefined,
}
const exampleTime = Date.UTC(2013, 4, 24)
const host = 'examplebucket.s3.amazonaws.com'

test('the example of the documentation has all headers: GET of a range', () => {
  const headers = { host, range: 'bytes=0-9' }
  const request = { method: 'GET', path: '/test.txt', query: '', payloadHash: emptyPayloadHash, headers }
  expect(new SignatureV4('us-east-1').sign(request, example, exampleTime)).toEqual({
    host,
    range: 'bytes=0-9',
    'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'x-amz-date': '20130524T000000Z',
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;' +
      'x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
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

/** The signer chooses the order of the parameters. The signature is about the sorted ones. */
function parametersOf(url: string): { readonly place: string; readonly parameters: readonly string[] } {
  const [place = '', query = ''] = url.split('?')
  return { place, parameters: query.split('&').sort() }
}

/** Names, parameters and headers have all kinds of characters. botocore writes a space after each comma. */
test('80 requests and 40 presigned addresses are signed as botocore signs them', () => {
  expect(vectors.map(({ kind }) => kind).filter((kind) => kind === 'headers').length).toBe(80)
  expect(vectors.length).toBe(120)
  for (const vector of vectors) {
    const { url, host, path } = new S3Address(vector).urlOf(vector.name)
    const [signature, credentials] = [new SignatureV4(vector.region), credentialsOf(vector)]
    if (vector.kind === 'presigned') {
      const query = signature.presign(host, path, credentials, vector.timeMs, vector.lifetimeSeconds)
      expect(parametersOf(`${url}?${query}`)).toEqual(parametersOf(vector.expected))
      continue
    }
    const query = encodeQuery(Object.entries(vector.query))
    const payloadHash = Bun.CryptoHasher.hash('sha256', vector.body, 'hex')
    const signable = { method: vector.method, path, query, headers: { host, ...vector.headers }, payloadHash }
    const { authorization } = signature.sign(signable, credentials, vector.timeMs)
    expect(authorization).toBe(vector.expected.replaceAll(', ', ','))
  }
})

test('the kept key of a day is not used on another day, nor with another secret', () => {
  const kept = new SignatureV4('us-east-1')
  const tomorrow = exampleTime + 86_400_000
  const presigned = [
    [example, exampleTime],
    [example, tomorrow],
    [{ ...example, secretAccessKey: 'other' }, tomorrow],
  ] as const
  for (const [credentials, time] of presigned) {
    const fresh = new SignatureV4('us-east-1').presign(host, '/x', credentials, time, 60)
    expect(kept.presign(host, '/x', credentials, time, 60)).toBe(fresh)
  }
})

describe('the address of an object', () => {
  const bucket = 'layers'

  test.each([
    ['http://s3:9000/', true, { url: 'http://s3:9000/layers/a/b', host: 's3:9000', path: '/layers/a/b' }],
    ['http://s3:9000/', false, { url: 'http://layers.s3:9000/a/b', host: 'layers.s3:9000', path: '/a/b' }],
    ['https://s3:443/x//', true, { url: 'https://s3/x/layers/a/b', host: 's3', path: '/x/layers/a/b' }],
    ['http://[::1]:90', true, { url: 'http://[::1]:90/layers/a/b', host: '[::1]:90', path: '/layers/a/b' }],
  ])('%s, bucket in the path: %p', (endpoint, isPathStyle, expected) => {
    expect(new S3Address({ endpoint, bucket, isPathStyle }).urlOf('a/b')).toEqual(expected)
  })

  test('is sent as it is signed, with any characters', async () => {
    const seen: string[] = []
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        seen.push(request.url.slice(server.url.origin.length))
        return new Response()
      },
    })
    const address = new S3Address({ endpoint: `${server.url.origin}/ba se`, bucket, isPathStyle: true })
    const targets = ["a b+c'(d)*!~/%41%2f/\u00fc\u20ac/...", 'a//b/', ';=&?#@:[]|^`{}"<>\\'].map((name) =>
      address.urlOf(name),
    )
    for (const { url } of targets) await fetch(url)
    await server.stop(true)
    expect(seen).toEqual(targets.map(({ path }) => path))
  })

  test('of the bucket itself has no slash after its name in a path', () => {
    expect(new S3Address({ endpoint: 'http://s3', bucket, isPathStyle: true }).urlOf().path).toBe('/layers')
    expect(new S3Address({ endpoint: 'http://s3', bucket, isPathStyle: false }).urlOf().path).toBe('/')
  })

  test.each(['..', '.', '', 'a/../b', 'a/.', '../a'])(
    'is refused for a name that a client would resolve: %p',
    (name) => {
      expect(() => new S3Address({ endpoint: 'http://s3', bucket, isPathStyle: true }).urlOf(name)).toThrow('name')
    },
  )

  test.each(['', 's3.example', 'ftp://s3', 'http://s3?x=1', 'http://s3#x', 'http://user:word@s3'])(
    'needs a valid endpoint, and the error does not quote it: %p',
    (endpoint) => {
      const open = () => new S3Address({ endpoint, bucket, isPathStyle: true })
      expect(open).toThrow('the S3 endpoint must have the form http(s)://host[:port][/base]')
      expect(open).not.toThrow('word')
    },
  )

  test('needs a valid bucket, and one that fits into the host name if it stands there', () => {
    const invalid = ['', 'ab', 'a/b', 'a?b', '..', 'a b', 'b\u00fccket'].map(
      (name) => [name, 'http://s3', true] as const,
    )
    const unfit = [
      ['Layers', 'http://s3', false],
      ['_layers', 'http://s3', false],
      [bucket, 'http://127.0.0.1:9000', false],
    ] as const
    for (const [name, endpoint, isPathStyle] of [...invalid, ...unfit]) {
      expect(() => new S3Address({ endpoint, bucket: name, isPathStyle })).toThrow('bucket')
    }
  })
})
