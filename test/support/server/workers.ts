import { readdirSync, readFileSync } from 'node:fs'

/** The servers of the tests are one process each. `TEST_WORKERS=2` runs them with two workers. */
export function workerSettings(): { readonly BERTH_SERVER__WORKERS: string } {
  return { BERTH_SERVER__WORKERS: process.env['TEST_WORKERS'] ?? '1' }
}

/** The processes that this process has started: the workers of a server that has more than one. */
export function workersOf(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).map((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'),
  )
  return children.join(' ').split(' ').filter(Boolean).map(Number)
}
