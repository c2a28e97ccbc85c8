/** The longest interval of a timer: 2^31 - 1 ms, 24.8 days. A longer one would fire after 1 ms. */
const timerMsMax = 2 ** 31 - 1

/** As `setInterval`, for periods of any length. The returned function stops it. */
export function repeatEvery(periodMs: number, act: () => void): () => void {
  const steps = Math.ceil(periodMs / timerMsMax)
  let step = 0
  const timer = setInterval(() => {
    step = (step + 1) % steps
    if (step === 0) act()
  }, periodMs / steps)
  return () => clearInterval(timer)
}
