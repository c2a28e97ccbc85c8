/**
 * Continues with a value: now if it is here, otherwise when its promise resolves. An `await` would always wait for the
 * next microtask. Errors that `value` or `next` throws at once are thrown, not returned as a rejection.
 */
export function andThen<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
