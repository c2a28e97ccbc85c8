// All probes, and a check that they call every method of the metadata store.
import type { Tables } from '../../src/ports/metadata-store.ts'
import type { Probe } from './probe.ts'
import { auditProbes } from './probes-of-audit.ts'
import { keepingProbes } from './probes-of-keeping.ts'
import { operatorProbes } from './probes-of-operators.ts'
import { pullProbes } from './probes-of-pulls.ts'
import { pushProbes } from './probes-of-pushes.ts'
import { uploadProbes } from './probes-of-uploads.ts'

export const probes: readonly Probe[] = [
  ...pullProbes,
  ...uploadProbes,
  ...pushProbes,
  ...keepingProbes,
  ...operatorProbes,
  ...auditProbes,
]

/** Not measured: a table of a few rows. */
const passedOver = 'marks.'

/** Records which methods of the tables are called, to report methods that no probe measures. */
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
