// What an answer must be. Each function throws a ConformanceFailure that names the request, so that the same checks can
// be turned on a registry that is broken on purpose.

import { ociErrorCodes } from '../support/api/oci-error-codes.ts'
import type { Reply, Repository } from './client.ts'

export class ConformanceFailure extends Error {
  override readonly name = 'ConformanceFailure'
}

const shownBytesMax = 300

export function fail(reply: Reply, problem: string): never {
  const body = new TextDecoder().decode(reply.body.subarray(0, shownBytesMax))
  throw new ConformanceFailure(`${reply.asked} answered ${reply.status}: ${problem}\n${body}`)
}

export function expectStatus(reply: Reply, ...expected: readonly number[]): void {
  if (!expected.includes(reply.status)) fail(reply, `the status must be ${expected.join(' or ')}`)
}

/** A refusal, and where it has a body, one that clients can read. */
export function expectRefusal(reply: Reply, ...expected: readonly number[]): void {
  expectStatus(reply, ...expected)
  if (reply.method === 'HEAD') return
  const { errors } = readJson(reply, 'application/json')
  if (!Array.isArray(errors) || errors.length === 0) fail(reply, 'the body must hold errors')
  for (const error of errors) {
    if (!isRecord(error) || !ociErrorCodes.has(String(error['code']))) {
      fail(reply, `${JSON.stringify(error)} must have a code of the distribution-spec's list`)
    }
  }
}

/** The exact value: clients compare `Content-Type` and others as strings, so a parameter more is a failure. */
export function expectHeader(reply: Reply, name: string, expected: string): void {
  const found = reply.headers.get(name)
  if (found !== expected)
    fail(reply, `${name} must be '${expected}' and is ${found === null ? 'absent' : `'${found}'`}`)
}

export function expectNoHeader(reply: Reply, name: string): void {
  if (reply.headers.has(name)) fail(reply, `${name} must be absent and is '${reply.headers.get(name)}'`)
}

/** A header that is a list, with commas or repeated: it holds this and maybe more. */
export function expectListed(reply: Reply, name: string, expected: string): void {
  const values = (reply.headers.get(name) ?? '').split(',').map((value) => value.trim())
  if (!values.includes(expected)) fail(reply, `${name} must name ${expected} and is '${values.join(', ')}'`)
}

export function expectBody(reply: Reply, expected: Uint8Array): void {
  if (!Buffer.from(reply.body).equals(expected)) {
    fail(reply, `the body must be the ${expected.length} bytes that were sent and is ${reply.body.length} others`)
  }
}

/** Status, length and bytes of content that is there; for HEAD all but the bytes. */
export function expectContent(reply: Reply, expected: Uint8Array): void {
  expectStatus(reply, 200)
  expectHeader(reply, 'content-length', String(expected.length))
  expectBody(reply, reply.method === 'HEAD' ? new Uint8Array() : expected)
}

/**
 * Where the registry says to go on. It must lead into the same repository by the same mount: docker sends its credentials
 * nowhere else, and the official suite reads the repository's name from it.
 */
export function locationOf(reply: Reply, repository: Repository): URL {
  const location = reply.headers.get('location')
  if (location === null || location === '') fail(reply, 'it must carry a Location')
  const target = new URL(location, reply.url)
  const home = `${repository.origin}${repository.mount}/v2/${repository.name}/`
  if (!target.href.startsWith(home)) fail(reply, `the Location ${location} must lead to ${home}`)
  return target
}

export function readJson(reply: Reply, mediaType: string): Record<string, unknown> {
  expectHeader(reply, 'content-type', mediaType)
  const text = new TextDecoder().decode(reply.body)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    fail(reply, 'the body must be JSON')
  }
  if (!isRecord(value)) fail(reply, 'the body must be a JSON object')
  return value
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Compares what is JSON on both sides; the order of an object's members does not count. */
export function expectEqual(reply: Reply, what: string, found: unknown, expected: unknown): void {
  if (Bun.deepEquals(found, expected)) return
  fail(reply, `${what} must be ${JSON.stringify(expected)} and is ${JSON.stringify(found)}`)
}
