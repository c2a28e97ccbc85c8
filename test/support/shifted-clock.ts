// Preloaded into a server (BUN_OPTIONS): its machine's clock goes wrong by CLOCK_SHIFT_MS, as if nobody had set it. Timers
// run as they did, as they do on such a machine.
const shiftMs = Number(process.env['CLOCK_SHIFT_MS'])
const rightNow = Date.now

Date.now = () => rightNow() + shiftMs
globalThis.Date = new Proxy(Date, {
  construct: (target, values, newTarget) =>
    Reflect.construct(target, values.length === 0 ? [Date.now()] : values, newTarget),
  apply: () => new Date().toString(),
})
