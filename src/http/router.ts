import { RegistryRefusal } from '../oci/errors.ts'
import type { Area } from './mounts.ts'
import type { Route } from './route.ts'
import { matchPattern, type PathValues, parsePattern, type RoutePattern } from './route-pattern.ts'

/** All routes of one pattern. */
interface Place {
  readonly pattern: RoutePattern
  readonly routes: ReadonlyMap<string, Route>
}

export interface MatchedRoute {
  readonly route: Route
  readonly values: PathValues
}

/** Finds the row of the table that a request is for. */
export class Router {
  readonly #registry: readonly Place[]
  readonly #service: readonly Place[]

  constructor(registryRoutes: readonly Route[], serviceRoutes: readonly Route[]) {
    this.#registry = toPlaces(registryRoutes)
    this.#service = toPlaces(serviceRoutes)
  }

  find(area: Area, path: string, method: string): MatchedRoute {
    const isRegistry = area.kind === 'registry'
    const places = isRegistry ? this.#registry : this.#service
    const segments = (isRegistry ? path.slice(area.mount.length + 1) : path.slice(1)).split('/')
    for (const place of places) {
      const values = matchPattern(place.pattern, segments)
      if (values === undefined) continue
      const route = place.routes.get(method === 'HEAD' ? 'GET' : method)
      if (route !== undefined) return { route, values }
      throw new RegistryRefusal('method-unsupported', { allow: allowed(place) })
    }
    throw new RegistryRefusal('route-unknown')
  }
}

function toPlaces(routes: readonly Route[]): Place[] {
  const byPattern = Map.groupBy(routes, (route) => route.pattern)
  return [...byPattern].map(([pattern, rows]) => ({
    pattern: parsePattern(pattern),
    routes: new Map(rows.map((row) => [row.method, row])),
  }))
}

function allowed({ routes }: Place): string {
  return [...routes.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
}
