/** `TEST_WORKERS=2` runs the servers of the tests with two workers each. */
export function workerSettings(): Readonly<Record<string, string>> {
  const workers = process.env['TEST_WORKERS']
  return workers === undefined ? {} : { BERTH_SERVER__WORKERS: workers }
}
