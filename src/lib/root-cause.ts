/** The innermost cause of an error. Adapters wrap errors of drivers, and the innermost one says what to repair. */
export function rootCauseOf(error: Error): Error | undefined {
  let cause = error.cause
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  return cause instanceof Error ? cause : undefined
}
