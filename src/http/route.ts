import type { Right } from '../ports/identity.ts'
import type { Answer, CallerExchange, Exchange, RegistryExchange, RepositoryExchange } from './exchange.ts'

/** `GET` stands for HEAD too, everywhere. */
export type Method = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'

interface Row {
  /** Unique; the nine of spec.md have its names. Also the route's name in logs. */
  readonly operationId: string
  readonly method: Method
  readonly pattern: string
}

/** Who may call is part of every row: a row without it does not compile. */
export type Route = Row &
  (
    | { readonly access: 'anyone'; readonly handle: (exchange: Exchange) => Promise<Answer> }
    | {
        readonly access: 'known caller'
        readonly right: Right | undefined
        readonly handle: (exchange: CallerExchange) => Promise<Answer>
      }
    | {
        readonly access: 'enabled account'
        readonly right: Right
        readonly handle: (exchange: RegistryExchange) => Promise<Answer>
      }
    | {
        readonly access: 'repository'
        readonly right: Right
        readonly handle: (exchange: RepositoryExchange) => Promise<Answer>
      }
  )

export type RouteOf<Access extends Route['access']> = Extract<Route, { access: Access }>
