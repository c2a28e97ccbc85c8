/**
 * A value, or the promise of one. A method returns it if the value is usually in memory, and the caller is on the path
 * of every read: each `await` of such a request costs more than the look-up itself.
 */
export type Awaitable<T> = T | Promise<T>
