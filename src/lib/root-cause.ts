/** What an error comes from in the end: adapters wrap their driver's, and what people can mend is said by the innermost. */
export function rootCauseOf(error: Error): Error | undefined {
  let cause = error.cause
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  return cause instanceof Error ? cause : undefined
}
