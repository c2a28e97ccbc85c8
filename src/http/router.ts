import { RegistryRefusal } from '../oci/errors.ts'
import type { Area } from './mounts.ts'
import type { Route } from './route.ts'
import { matchPattern, type PathValues, parsePattern, type RoutePattern } from './route-pattern.ts'

/** The routes that share one pattern, by method. */
interface Resource {
  readonly pattern: RoutePattern
  readonly routes: ReadonlyMap<string, Route>
}

export interface MatchedRoute {
  readonly route: Route
  readonly values: PathValues
}

/** Finds the route of a request. */
export class Router {
  readonly #registry: readonly Resource[]
  readonly #service: readonly Resource[]

  constructor(registryRoutes: readonly Route[], serviceRoutes: readonly Route[]) {
    this.#registry = toResources(registryRoutes)
    this.#service = toResources(serviceRoutes)
  }

  find(area: Area, path: string, method: string): MatchedRoute {
    const isRegistry = area.kind === 'registry'
    const resources = isRegistry ? this.#registry : this.#service
    const start = isRegistry ? area.mount.length : 0
    // `/v2` without a slash means the same as `/v2/`.
    const whole = path.length === start ? `${path}/` : path
    for (const resource of resources) {
      const values = matchPattern(resource.pattern, whole, start)
      if (values === undefined) continue
      const route = resource.routes.get(method === 'HEAD' ? 'GET' : method)
      if (route !== undefined) return { route, values }
      throw new RegistryRefusal('method-unsupported', { allow: allowed(resource) })
    }
    throw new RegistryRefusal('route-unknown')
  }
}

function toResources(routes: readonly Route[]): Resource[] {
  const byPattern = Map.groupBy(routes, (route) => route.pattern)
  return [...byPattern].map(([pattern, rows]) => ({
    pattern: parsePattern(pattern),
    routes: new Map(rows.map((row) => [row.method, row])),
  }))
}

function allowed({ routes }: Resource): string {
  return [...routes.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
}
