// Preloaded into a server (BUN_OPTIONS): its machine's clock goes wrong by CLOCK_SHIFT_MS, as if nobody had set it, and by
// CLOCK_JUMP_MS at each SIGUSR2, as if somebody had. Timers run as they did, as they do on such a machine.
let shiftMs = Number(process.env['CLOCK_SHIFT_MS'] ?? 0)
process.on('SIGUSR2', () => {
  shiftMs += Number(process.env['CLOCK_JUMP_MS'] ?? 0)
})
const rightNow = Date.now

Date.now = () => rightNow() + shiftMs
globalThis.Date = new Proxy(Date, {
  construct: (target, values, newTarget) =>
    Reflect.construct(target, values.length === 0 ? [Date.now()] : values, newTarget),
  apply: () => new Date().toString(),
})
