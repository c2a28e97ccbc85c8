// What an answer must be.
import { expect } from 'bun:test'
import { ociErrorCodes } from '../support/api/oci-error-codes.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import type { Reply, Repository } from './case.ts'
import type { Content } from './data-set.ts'

type Headers = Readonly<Record<string, string | null>>

/** The exact values of these headers: clients compare `Content-Type` and others as texts. `null` stands for absent. */
export function expectAnswer(reply: Reply, status: number, headers: Headers = {}): void {
  const found = Object.fromEntries(Object.keys(headers).map((name) => [name, reply.headers.get(name)]))
  expect<object>({ status: reply.status, ...found }).toEqual({ status, ...headers })
}

/** Status, length, digest and bytes of stored content; for HEAD all but the bytes. */
export function expectContent(reply: Reply, { digest, bytes }: Content, headers: Headers = {}): void {
  expectAnswer(reply, 200, { 'content-length': String(bytes.length), 'docker-content-digest': digest, ...headers })
  const algorithm = digest.startsWith('sha512') ? 'sha512' : 'sha256'
  const body = reply.method === 'HEAD' ? digestOf('', algorithm) : digest
  expect<object>({ body: digestOf(reply.bytes, algorithm) }).toEqual({ body })
}

/** A refusal. If it has a body, the body has errors with codes of the distribution-spec. */
export function expectRefusal(reply: Reply, ...statuses: readonly number[]): void {
  if (!statuses.includes(reply.status)) expectAnswer(reply, statuses[0] ?? 0)
  if (reply.method === 'HEAD') return
  const { errors } = readJson<{ errors: { code: string }[] }>(reply, 'application/json')
  expect(errors.length).toBeGreaterThan(0)
  const unknownCodes = errors.map(({ code }) => code).filter((code) => !ociErrorCodes.has(code))
  expect({ unknownCodes }).toEqual({ unknownCodes: [] })
}

export function readJson<T>(reply: Reply, mediaType: string): T {
  expectAnswer(reply, reply.status, { 'content-type': mediaType })
  return JSON.parse(new TextDecoder().decode(reply.bytes))
}

/**
 * Where the registry says to go on. It must lead into the same repository by the same mount: docker sends its
 * credentials nowhere else.
 */
export function locationOf({ headers }: Reply, { mount, name }: Repository): string {
  const location = headers.get('location')
  expect(location).toStartWith(`${mount}/v2/${name}/`)
  return location ?? ''
}
