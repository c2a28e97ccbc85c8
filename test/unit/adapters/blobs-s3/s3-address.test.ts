import { describe, expect, test } from 'bun:test'
import { S3Address } from '../../../../src/adapters/blobs-s3/signature-v4.ts'

const bucket = 'layers'

describe('the address of an object', () => {
  test.each([
    ['https://s3.example', true, { url: 'https://s3.example/layers/a/b', host: 's3.example', path: '/layers/a/b' }],
    ['https://s3.example', false, { url: 'https://layers.s3.example/a/b', host: 'layers.s3.example', path: '/a/b' }],
    ['http://s3:9000/', true, { url: 'http://s3:9000/layers/a/b', host: 's3:9000', path: '/layers/a/b' }],
    ['http://s3:9000/', false, { url: 'http://layers.s3:9000/a/b', host: 'layers.s3:9000', path: '/a/b' }],
    [
      'https://s3.example:443/x//',
      true,
      { url: 'https://s3.example/x/layers/a/b', host: 's3.example', path: '/x/layers/a/b' },
    ],
    [
      'http://s3.example/x',
      false,
      { url: 'http://layers.s3.example/x/a/b', host: 'layers.s3.example', path: '/x/a/b' },
    ],
    ['http://[::1]:90', true, { url: 'http://[::1]:90/layers/a/b', host: '[::1]:90', path: '/layers/a/b' }],
  ])('%s, bucket in the path: %p', (endpoint, isPathStyle, expected) => {
    expect(new S3Address({ endpoint, bucket, isPathStyle }).urlOf('a/b')).toEqual(expected)
  })

  test('is sent as it is signed, whatever signs are in it', async () => {
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
})

test('the bucket itself has no slash behind its name in a path, and nothing but one in a host', () => {
  expect(new S3Address({ endpoint: 'http://s3', bucket, isPathStyle: true }).urlOf().path).toBe('/layers')
  expect(new S3Address({ endpoint: 'http://s3', bucket, isPathStyle: false }).urlOf().path).toBe('/')
})

describe('refused are', () => {
  test.each(['..', '.', '', 'a/../b', 'a/.', '../a'])('names that a client would resolve: %p', (name) => {
    expect(() => new S3Address({ endpoint: 'http://s3', bucket, isPathStyle: true }).urlOf(name)).toThrow('name')
  })

  test.each(['', 's3.example', 'ftp://s3', 'http://s3?x=1', 'http://s3#x', 'http://user:word@s3'])(
    'endpoints that are none, and nothing of them is told: %p',
    (endpoint) => {
      const open = () => new S3Address({ endpoint, bucket, isPathStyle: true })
      expect(open).toThrow('the S3 endpoint must have the form http(s)://host[:port][/base]')
      expect(open).not.toThrow('word')
    },
  )

  test.each(['', 'ab', 'a/b', 'a?b', '..', 'a b', 'b\u00fccket'])('buckets that are none: %p', (name) => {
    expect(() => new S3Address({ endpoint: 'http://s3', bucket: name, isPathStyle: true })).toThrow('bucket')
  })

  test('buckets that cannot be in a host name, where they have to be', () => {
    const settings = { endpoint: 'http://s3', isPathStyle: false }
    expect(() => new S3Address({ ...settings, bucket: 'Layers' })).toThrow('bucket')
    expect(() => new S3Address({ ...settings, bucket: '_layers' })).toThrow('bucket')
    expect(() => new S3Address({ ...settings, bucket, endpoint: 'http://127.0.0.1:9000' })).toThrow('bucket')
  })
})
