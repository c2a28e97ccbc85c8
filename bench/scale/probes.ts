// Every statement of the metadata store, asked through the adapter as a server asks it.
import type { Tables } from '../../src/ports/metadata-store.ts'
import { keepingProbes } from './probes-of-keeping.ts'
import { operatorProbes } from './probes-of-operators.ts'
import { pullProbes } from './probes-of-pulls.ts'
import { pushProbes } from './probes-of-pushes.ts'
import { uploadProbes } from './probes-of-uploads.ts'
import type { Key, World } from './sample.ts'

/** Measures what `work` asks; what a probe does before and after is not counted. */
export type Watch = (work: () => Promise<unknown>) => Promise<void>

export interface Asked {
  readonly tables: Tables
  readonly key: Key
  readonly world: World
  readonly watch: Watch
}

export interface Probe {
  readonly name: string
  /** `request`: on the way of one; `collector`: beside them; `operator`: asked for by people, and allowed to grow. */
  readonly kind: 'request' | 'collector' | 'operator'
  /** Why it may grow with the registry, where it does by its nature. */
  readonly grows?: string
  readonly runs?: number
  act(asked: Asked): Promise<unknown>
}

export const probes: readonly Probe[] = [
  ...pullProbes,
  ...uploadProbes,
  ...pushProbes,
  ...keepingProbes,
  ...operatorProbes,
]

/** Not asked: a table of a few rows. */
const passedOver = 'marks.'

/** Watches which of the tables' methods are called, so that one that nobody measures is told. */
export class Coverage {
  readonly #called = new Set<string>()

  of(tables: Tables): Tables {
    const seen = Object.entries(tables).map(([noun, table]: [string, object]) => [noun, this.#noting(noun, table)])
    return Object.fromEntries(seen)
  }

  missing(tables: Tables): string[] {
    return Object.entries(tables)
      .flatMap(([noun, table]: [string, object]) =>
        Object.getOwnPropertyNames(Object.getPrototypeOf(table)).map((method) => `${noun}.${method}`),
      )
      .filter((name) => !name.endsWith('.constructor') && !name.startsWith(passedOver) && !this.#called.has(name))
  }

  #noting<T extends object>(noun: string, table: T): T {
    return new Proxy(table, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return (...values: unknown[]) => {
          this.#called.add(`${noun}.${String(name)}`)
          return Reflect.apply(member, target, values)
        }
      },
    })
  }
}
