/** Runs tasks one at a time, in the order of their arrival. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  run<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task)
    this.#last = done.catch(() => undefined)
    return done
  }
}
