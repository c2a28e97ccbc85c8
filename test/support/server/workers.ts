import { readdirSync, readFileSync } from 'node:fs'

/** `TEST_WORKERS=2` runs the servers of the tests with two workers each. */
export function workerSettings(): Readonly<Record<string, string>> {
  const workers = process.env['TEST_WORKERS']
  return workers === undefined ? {} : { BERTH_SERVER__WORKERS: workers }
}

/** The processes that this process has started: the workers of a server that has more than one. */
export function workersOf(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).map((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'),
  )
  return children.join(' ').split(' ').filter(Boolean).map(Number)
}
