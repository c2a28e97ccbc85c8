// A request that is refused, and what has to stand ready for it.
import type { ApiServer, Question } from '../support/api/api-server.ts'

export interface Provocation extends Question {
  readonly method: string
  readonly path: string
  /** In place of simply asking: for answers that take more than one connection. */
  readonly act?: () => Promise<Refused>
}

/** As much of an answer as any way of asking gives. */
export interface Refused {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export type Prepare = (mount: string, server: ApiServer) => Provocation | Promise<Provocation>

export interface Way {
  readonly settings?: Readonly<Record<string, string>>
  /** Under a mount of the registry interface. */
  readonly registry?: Prepare
  /** Elsewhere. */
  readonly service?: Prepare
}

export const get = (path: string, question: Question = {}): Provocation => ({ method: 'GET', path, ...question })
