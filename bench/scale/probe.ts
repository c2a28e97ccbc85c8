// A probe calls statements of the metadata store through the adapter, as a server does.
import type { Awaitable } from '../../src/ports/awaitable.ts'
import type { Tables } from '../../src/ports/metadata-store.ts'
import type { Key, World } from './sample.ts'

/** Measures the statements of `work`. Statements before and after it are not counted. */
export type Watch = (work: () => Awaitable<unknown>) => Promise<void>

export interface Asked {
  readonly tables: Tables
  readonly key: Key
  readonly world: World
  readonly watch: Watch
}

export interface Probe {
  readonly name: string
  /** `request`: part of a request. `collector`: part of a collection. `operator`: called by people; it may grow. */
  readonly kind: 'request' | 'collector' | 'operator'
  /** The reason, if the cost grows with the registry by design. */
  readonly grows?: string
  readonly runs?: number
  act(asked: Asked): Promise<unknown>
}
