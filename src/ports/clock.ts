/**
 * Time and unique ids for this process, so that tests can control them. Times that several servers compare (leases,
 * expiry, quarantine) are not taken from this clock: the metadata store compares them with its own.
 */
export interface Clock {
  /** Milliseconds since 1970. Setting the clock of the machine changes it. */
  now(): number
  /** Milliseconds since some moment. Setting the clock of the machine does not change it. To measure durations. */
  steadyNow(): number
  /** A new unique id. Ids sort in the order of their creation: `0193…-…`. */
  freshId(): string
  /** Calls `act` at regular intervals until the result is disposed. */
  every(intervalMs: number, act: () => void): Disposable
  sleep(ms: number): Promise<void>
}
