// Preloaded into a server (BUN_OPTIONS): its clock is wrong by CLOCK_SHIFT_MS from the start, and it jumps by
// CLOCK_JUMP_MS at each SIGUSR2. Timers are not affected, as on a real machine.
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
