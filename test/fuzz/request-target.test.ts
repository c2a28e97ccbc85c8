import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { apiPrefix, areaOf } from '../../src/http/mounts.ts'
import { parseTarget } from '../../src/http/request-target.ts'
import { matchPattern, parsePattern } from '../../src/http/route-pattern.ts'
import { Router } from '../../src/http/router.ts'
import { registryRoutes, serviceRoutes } from '../../src/http/routes.ts'
import { isRepositoryName } from '../../src/oci/names.ts'
import { anyText, check, piecesOf } from '../support/basics/fuzzing.ts'
import { refusalOf } from '../support/basics/outcomes.ts'

const host = 'http://127.0.0.1:5000'
const paths = piecesOf([
  '/',
  'v2',
  'a',
  '%2f',
  '%2F',
  '%5c',
  '%2e',
  '.',
  '..',
  '%00',
  '%0a',
  '%7f',
  '%3A',
  '%25',
  '%C3%A9',
  '%ff',
  '%',
  '%4',
  ':',
  '~',
  '+',
  '%C2%9B',
  '%C2%85',
  ';x',
  '@',
])

describe('a request target', () => {
  test('is refused, or is the path that a browser would ask for, decoded once', () => {
    check(paths, fc.oneof(fc.constant(''), anyText), (path, query) => {
      const url = new URL(`${host}/${path}`)
      url.search = query
      const refusal = refusalOf(() => {
        const target = parseTarget(url.href)
        expect(target.path).toBe(decodeURIComponent(url.pathname))
        expect([...target.query]).toEqual([...url.searchParams])
      })
      expect([undefined, 'path-invalid', 'uri-too-long']).toContain(refusal)
    })
  })

  test('that is taken is made of visible ASCII, with no empty segment and no segment of dots', () => {
    check(anyText, (text) => {
      refusalOf(() => expect(parseTarget(`/${text}`).path).toMatch(/^\/[ -~]*$/))
    })
    check(paths, (path) => {
      refusalOf(() => {
        const { path: taken } = parseTarget(new URL(`${host}/${path}`).href)
        expect(taken).toMatch(/^\/[ -~]*$/)
        expect(taken).not.toContain('//')
        expect(taken.split('/').filter((segment) => segment === '.' || segment === '..')).toEqual([])
        expect(taken).not.toContain('\\')
      })
    })
  })
})

const component = fc.oneof(
  fc.constantFrom('blobs', 'manifests', 'tags', 'list', 'uploads', 'referrers', 'v2', 'api', 'a'),
  fc.stringMatching(/^[a-z0-9]{1,8}(?:[._-][a-z0-9]{1,4})?$/),
)
const names = fc.array(component, { minLength: 1, maxLength: 8 }).map((components) => components.join('/'))
const tails: Readonly<Record<string, fc.Arbitrary<string>>> = {
  reference: fc.oneof(
    component,
    fc.stringMatching(/^[A-Z_][a-zA-Z0-9._-]{0,20}$/),
    fc.constant(`sha256:${'0'.repeat(64)}`),
  ),
  digest: fc.constantFrom(`sha256:${'a'.repeat(64)}`, `sha512:${'b'.repeat(128)}`, 'x+y:z=_'),
  id: fc.uuid(),
}

/** The route, a good name, and good values for the rest of its pattern. */
const requests = fc.constantFrom(...registryRoutes.filter(({ access }) => access === 'repository')).chain((route) => {
  const keys = [...route.pattern.matchAll(/\{(\w+)\}/g)].map(([, key = '']) => key).filter((key) => key !== 'name')
  const values = fc.record(Object.fromEntries(keys.map((key) => [key, tails[key] ?? component])))
  return fc.record({ route: fc.constant(route), name: names, values })
})

function build(pattern: string, values: Readonly<Record<string, string>>): string {
  return pattern.replace(/\{(\w+)\}/g, (_whole, key: string) => values[key] ?? '')
}

describe('a path that is built from a route', () => {
  const router = new Router(registryRoutes, serviceRoutes)

  test('is taken apart into the same route and the same values, under both mounts', () => {
    check(requests, fc.constantFrom('/v2', `${apiPrefix}/v2`), ({ route, name, values }, mount) => {
      expect(isRepositoryName(name)).toBe(true)
      const path = mount + build(route.pattern, { ...values, name })
      const found = router.find(areaOf(path, true), path, route.method)
      expect(found.route.operationId).toBe(route.operationId)
      expect({ ...found.values }).toEqual({ ...values, name })
    })
  })

  test('comes through a request target unchanged, with its colon encoded or not', () => {
    check(requests, fc.boolean(), ({ route, name, values }, isEncoded) => {
      const path = `/v2${build(route.pattern, { ...values, name })}`
      expect(parseTarget(host + (isEncoded ? path.replaceAll(':', '%3A') : path)).path).toBe(path)
    })
  })

  test('is never given an empty value, whatever the path', () => {
    const nearPath = piecesOf(['/', 'a', 'blobs', 'uploads', 'manifests', 'tags', 'list', 'referrers'], 14)
    check(fc.constantFrom(...registryRoutes), nearPath, ({ pattern }, path) => {
      const values = matchPattern(parsePattern(pattern), `/${path}`, 0)
      for (const [key, value] of Object.entries(values ?? {})) if (key !== 'name') expect(value).not.toBe('')
      if (values !== undefined) expect(build(pattern, values)).toBe(`/${path}`)
    })
  })
})
