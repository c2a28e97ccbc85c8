// Every way to say no: the list, its row in the table, its words on the wire and its place in the document.
import { afterAll, describe, expect, test } from 'bun:test'
import { errorTable } from '../../src/http/error-body.ts'
import { type Refusal, refusalWords } from '../../src/oci/errors.ts'
import { type ApiServer, mounts, startApi } from '../support/api/api-server.ts'
import { ociErrorCodes } from '../support/api/oci-error-codes.ts'
import { findOperation } from '../support/api/openapi-document.ts'
import type { Provocation, Refused, Way } from './provocation.ts'
import { ways } from './provocations.ts'

const shared = await startApi()
afterAll(() => shared.stop())

const refusals = Object.keys(refusalWords) as Refusal[]

test("the table answers each refusal with a 4xx status and a code of the OCI list, but those that are no caller's fault", () => {
  const others = refusals.filter((refusal) => {
    const { status, code } = errorTable[refusal]
    return status < 400 || status > 499 || !ociErrorCodes.has(code)
  })

  // The caller may ask again.
  expect(others).toEqual(['read-only', 'disk-low'])
  expect(others.map((refusal) => errorTable[refusal].status)).toEqual([503, 503])
  expect(Object.values(refusalWords).filter((words) => /^[A-Z]|\.$/.test(words))).toEqual([])
})

test('the table of provocations has all refusals', () => {
  const unprovoked = refusals.filter((refusal) => {
    const way: Way | undefined = ways[refusal]
    return way?.registry === undefined && way?.service === undefined
  })

  expect(unprovoked).toEqual([])
})

async function refuse(server: ApiServer, { act, method, path, ...question }: Provocation): Promise<Refused> {
  return act === undefined ? server.ask(method, path, question) : act()
}

/** A refusal that needs settings of its own gets a server of its own. */
async function provoke(refusal: Refusal, prepare: (server: ApiServer) => Promise<Provocation>) {
  const { settings } = ways[refusal]
  const server = settings === undefined ? shared : await startApi(settings)
  try {
    const provocation = await prepare(server)
    return { provocation, reply: await refuse(server, provocation) }
  } finally {
    if (server !== shared) await server.stop()
  }
}

function expectDocumented(refusal: Refusal, { method, path }: Provocation): void {
  const operation = findOperation(method, path.split('?')[0] ?? '')
  const { status, code } = errorTable[refusal]
  if (refusal === 'route-unknown' || refusal === 'method-unsupported') expect(operation).toBeUndefined()
  else if (operation !== undefined)
    expect(operation.responses[status]?.description).toContain(`${code}: ${refusalWords[refusal]}`)
}

const inRegistry = refusals.flatMap((refusal) =>
  ways[refusal].registry ? mounts.map((mount) => [refusal, mount] as const) : [],
)
const elsewhere = refusals.filter((refusal) => ways[refusal].service !== undefined)

/** What the provocations outside of the registry are told beyond, or in place of, the words of the refusal. */
const reasonsElsewhere: Readonly<Partial<Record<Refusal, string>>> = {
  'body-invalid': 'the request body is not valid: must be JSON',
  'query-invalid': 'match: must be given, or tag',
  'last-operator':
    'the account would have no user with the right operate: give another user of the account a role with this right first',
  'identity-invalid': 'name: must be 1 to 128 letters, digits and . _ @ + -, beginning with a letter or a digit',
}

describe('on the wire', () => {
  test.each(inRegistry)('%s under %s has its status, errors[] with its code, and msg', async (refusal, mount) => {
    const { provocation, reply } = await provoke(refusal, async (server) => {
      const prepare = ways[refusal].registry
      if (prepare === undefined) throw new Error('not refused in the registry')
      return prepare(mount, server)
    })
    const { status, code } = errorTable[refusal]
    const body: { errors: readonly Record<string, unknown>[]; msg: string } = JSON.parse(reply.text)

    expect([reply.status, reply.headers.get('content-type')]).toEqual([status, 'application/json'])
    expect(reply.headers.has('retry-after')).toBe([429, 503].includes(status))
    expect(Object.keys(body).sort()).toEqual(['errors', 'msg'])
    // Clients show only the message, and people need the numbers of the quota.
    const message = refusal === 'quota-exceeded' ? expect.stringMatching(/^quota exceeded: .* 0 B of 0 B /) : undefined
    expect(body.msg).toEqual(message ?? refusalWords[refusal])
    expect(body.errors.length).toBeGreaterThan(0)
    for (const entry of body.errors) {
      expect(entry).toEqual({ code, message: message ?? refusalWords[refusal], detail: expect.any(Object) })
    }
    expectDocumented(refusal, provocation)
  })

  test.each(elsewhere)('%s elsewhere has its status and {msg} alone, with the reason in it', async (refusal) => {
    const { provocation, reply } = await provoke(refusal, async (server) => {
      const prepare = ways[refusal].service
      if (prepare === undefined) throw new Error('not refused elsewhere')
      return prepare('', server)
    })

    expect([reply.status, reply.headers.get('content-type')]).toEqual([errorTable[refusal].status, 'application/json'])
    const msg = reasonsElsewhere[refusal] ?? refusalWords[refusal]
    expect(JSON.parse(reply.text)).toEqual({ msg })
    expectDocumented(refusal, provocation)
  })

  test.each([
    ['/nothing', 404],
    ['/_catalog?n=many', 400],
    ['/NOT/valid/tags/list', 404],
    ['/not%2fvalid/tags/list', 404],
    ['/no/such/tags/list', 404],
    ['/no/such/manifests/-bad', 404],
    ['/no/such/manifests/v1', 404],
    ['/no/such/blobs/sha256:short', 404],
    ['/no/such/blobs/uploads/no-id', 404],
    ['/no/such/blobs/uploads/', 405],
    ['/no/such/referrers/v1', 400],
  ])('HEAD %s is refused with %d and without a body', async (path, status) => {
    const reply = await shared.ask('HEAD', `/v2${path}`)

    expect([reply.status, reply.text]).toEqual([status, ''])
  })
})

describe('headers of refusals', () => {
  test('method-unsupported names the methods that there are', async () => {
    const replies = [await shared.ask('POST', '/v2/_catalog'), await shared.ask('PUT', '/v2/app/blobs/uploads/')]

    expect(replies.map((reply) => reply.headers.get('allow'))).toEqual(['GET, HEAD', 'POST'])
  })

  test('two refusals of the same request have different request ids', async () => {
    const [one, other] = [
      await shared.ask('GET', '/v2/', { key: 'none' }),
      await shared.ask('GET', '/v2/', { key: 'none' }),
    ]

    expect(one.headers.get('x-request-id')).not.toBe(other.headers.get('x-request-id'))
  })
})
