/** A timer of the runtime holds 2^31 - 1 ms, 24.8 days. It takes a longer time for 1 ms. */
const timerMsMax = 2 ** 31 - 1

/** As `setInterval`, for periods of any length. Gives the function that ends it. */
export function repeatEvery(periodMs: number, act: () => void): () => void {
  const steps = Math.ceil(periodMs / timerMsMax)
  let step = 0
  const timer = setInterval(() => {
    step = (step + 1) % steps
    if (step === 0) act()
  }, periodMs / steps)
  return () => clearInterval(timer)
}
