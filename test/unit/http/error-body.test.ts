import { describe, expect, test } from 'bun:test'
import { answerError, type ErrorContext, errorTable } from '../../../src/http/error-body.ts'
import { type Refusal, RegistryRefusal, refusalWords, Unavailable } from '../../../src/oci/errors.ts'
import { ociErrorCodes } from '../../support/api/oci-error-codes.ts'

const registry: ErrorContext = {
  territory: { kind: 'registry', mount: '/v2' },
  path: '/v2/a/blobs/uploads/x',
  requestId: 'r1',
  challenge: (refusal) => `Challenge of ${refusal}`,
}
const service: ErrorContext = { ...registry, territory: { kind: 'service' } }
const refusals = Object.keys(refusalWords) as Refusal[]

function answer(error: unknown, context = registry) {
  const { status, headers, body } = answerError(error, context)
  return { status, headers, body: JSON.parse(String(body)) }
}

describe.each(refusals)('the refusal %p', (refusal) => {
  test('has a status of the 4xx kind and a code of the specification, unless it is about us', () => {
    if (refusal === 'read-only' || refusal === 'disk-low') {
      expect(errorTable[refusal]).toEqual({ status: 503, code: 'UNAVAILABLE' })
      return
    }
    expect(errorTable[refusal].status).toBeGreaterThanOrEqual(400)
    expect(errorTable[refusal].status).toBeLessThan(500)
    expect(ociErrorCodes.has(errorTable[refusal].code)).toBe(true)
  })

  test('says its words in both forms on the registry interface, and in one elsewhere', () => {
    const { status, code } = errorTable[refusal]
    const message = refusalWords[refusal]
    const error = new RegistryRefusal(refusal, { why: 'x' })

    expect(answer(error)).toMatchObject({
      status,
      body: { errors: [{ code, message, detail: { why: 'x' } }], msg: message },
    })
    expect(answer(error, service)).toMatchObject({ status, body: { msg: message } })
    expect(Object.keys(answer(error, service).body)).toEqual(['msg'])
    expect(Object.keys(answer(error).body).toSorted()).toEqual(['errors', 'msg'])
    expect(answer(error).headers['content-type']).toBe('application/json')
  })
})

describe('the headers of a refusal', () => {
  test('401 carries exactly one challenge', () => {
    const strangers = refusals.filter((refusal) => errorTable[refusal].status === 401)
    expect(strangers).toEqual(['unauthenticated', 'credentials-invalid', 'scope-insufficient', 'login-invalid'])
    for (const refusal of strangers) {
      for (const context of [registry, service]) {
        expect(answer(new RegistryRefusal(refusal), context).headers['www-authenticate']).toBe(
          `Challenge of ${refusal}`,
        )
      }
    }
    const others = refusals.filter((refusal) => errorTable[refusal].status !== 401)
    for (const refusal of others) {
      expect(answer(new RegistryRefusal(refusal, { allow: 'GET' })).headers['www-authenticate']).toBeUndefined()
    }
  })

  test('the challenge of who is not refused for it is never even made', () => {
    const context: ErrorContext = {
      ...registry,
      challenge: () => {
        throw new Error('nobody was asked')
      },
    }
    expect(answer(new RegistryRefusal('denied'), context).status).toBe(403)
    expect(answer(new Unavailable('the identity service'), context).status).toBe(503)
  })

  test('405 names what is allowed, 416 what there is, 429 when to come back', () => {
    expect(answer(new RegistryRefusal('method-unsupported', { allow: 'GET, HEAD' })).headers['allow']).toBe('GET, HEAD')
    expect(answer(new RegistryRefusal('range-unsatisfiable', { size: 7 })).headers['content-range']).toBe('bytes */7')
    expect(answer(new RegistryRefusal('too-many-uploads', { max: 1 })).headers['retry-after']).toMatch(/^\d+$/)
    const tooMany = new RegistryRefusal('too-many-failures', { retryAfterSeconds: 30 })
    expect(answer(tooMany).headers['retry-after']).toBe('30')
    expect(answer(new RegistryRefusal('upload-out-of-order', { received: 5 })).headers).toMatchObject({
      location: '/v2/a/blobs/uploads/x',
      range: '0-4',
    })
  })
})

describe('what is not a refusal', () => {
  test('trouble is 503 and says when to come back, not why', () => {
    const error = new Unavailable('the blob store', { cause: new Error('/data/secret-path EIO') })
    const { status, headers, body } = answer(error)

    expect({ status, code: body.errors[0].code }).toEqual({ status: 503, code: 'UNAVAILABLE' })
    expect(headers['retry-after']).toMatch(/^\d+$/)
    expect(JSON.stringify(body)).not.toContain('secret-path')
  })

  test.each([
    new Error('SELECT secret'),
    new TypeError('x is undefined'),
    'secret text',
    undefined,
    null,
    { secret: 1 },
  ])('a mistake of ours (%#) is 500 and gives nothing away but the number of the request', (error) => {
    const { status, body } = answer(error)

    expect(status).toBe(500)
    expect(body).toEqual({
      errors: [{ code: 'UNKNOWN', message: 'internal error', detail: { requestId: 'r1' } }],
      msg: 'internal error',
    })
  })
})

test('each of several faults has an entry of its own', () => {
  const { body } = answer(new RegistryRefusal('manifest-blob-unknown', { digest: 'a' }, { digest: 'b' }))
  expect(body.errors.map((entry: { detail: unknown }) => entry.detail)).toEqual([{ digest: 'a' }, { digest: 'b' }])
})
