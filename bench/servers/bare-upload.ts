// The minimum for an upload in Bun: read, hash, write, fsync, check the digest. argv: the folder for the files.
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { announce } from './listening.ts'

const folder = Bun.argv[2] ?? ''

async function receive(request: Request): Promise<Response> {
  const file = openSync(join(folder, crypto.randomUUID()), 'w')
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of request.body ?? []) {
    hasher.update(chunk)
    for (let written = 0; written < chunk.length; ) written += writeSync(file, chunk, written)
  }
  fsyncSync(file)
  closeSync(file)
  const expected = new URL(request.url).searchParams.get('digest')
  return new Response(null, { status: expected === `sha256:${hasher.digest('hex')}` ? 201 : 400 })
}

// Bun refuses bodies over 128 MiB by default.
announce(Bun.serve({ hostname: '127.0.0.1', port: 0, maxRequestBodySize: 2 ** 40, idleTimeout: 0, fetch: receive }))
