/**
 * Time and chance, so that tests own both. Nothing that must agree between replicas is compared with this clock: leases,
 * expiry and quarantine are compared inside the metadata store, with the store's own.
 */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since some moment, at an even pace, whoever sets the clock: for distances within this process. */
  steadyNow(): number
  /** A name that was never given out before, in time order: `0193…-…`. */
  freshId(): string
  /** Calls `act` at an even pace until it is disposed. */
  every(intervalMs: number, act: () => void): Disposable
  sleep(ms: number): Promise<void>
}
