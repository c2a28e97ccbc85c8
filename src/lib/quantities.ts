// Parses and formats durations, times and amounts of bytes: `30s`, `24h`, `4MiB`.

const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const byteUnits: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4,
}

const quantity = /^(\d+)\s*([A-Za-z]*)$/

/** Milliseconds. Undefined if the text is no duration. A number without a unit means seconds. */
export function parseDuration(text: string): number | undefined {
  return parseQuantity(text, durationUnits, 's')
}

const timePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/

/** Milliseconds since 1970. Undefined if the text is no time with a zone, such as `2030-01-31T12:00:00Z`. */
export function parseTime(text: string): number | undefined {
  const time = timePattern.test(text) ? Date.parse(text) : Number.NaN
  // `Date.parse` reads the 30th of February as a day in March.
  const day = text.slice(0, 10)
  return Number.isNaN(time) || !new Date(day).toISOString().startsWith(day) ? undefined : time
}

/** ISO 8601. Null for undefined. */
export function formatTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}

/** Bytes. Undefined if the text is no amount. A number without a unit means bytes. */
export function parseByteCount(text: string): number | undefined {
  return parseQuantity(text, byteUnits, 'B')
}

/** The inverse of `parseDuration`: `90s`, `24h`. */
export function writeDuration(ms: number): string {
  return writeQuantity(ms, durationUnits, 's')
}

/** The inverse of `parseByteCount`: `4MiB`, `1500B`. */
export function writeByteCount(bytes: number): string {
  return writeQuantity(bytes, byteUnits, 'B')
}

function writeQuantity(value: number, units: Readonly<Record<string, number>>, unitOfNone: string): string {
  if (value === 0) return `0${unitOfNone}`
  // The largest unit that divides the value. The smallest unit divides every value.
  const [unit = unitOfNone, factor = 1] = Object.entries(units).findLast(([, size]) => value % size === 0) ?? []
  return `${value / factor}${unit}`
}

function parseQuantity(text: string, units: Readonly<Record<string, number>>, bareUnit: string): number | undefined {
  const match = quantity.exec(text.trim())
  const factor = units[match?.[2] || bareUnit]
  const value = Number(match?.[1]) * (factor ?? Number.NaN)
  return Number.isSafeInteger(value) ? value : undefined
}

/** The two largest units: `3d 4h`, `12m 5s`, `0s`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  if (first < 0) return '0s'
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(' ')
}

export function formatBytes(bytes: number): string {
  const unit = ['TiB', 'GiB', 'MiB', 'KiB'].find((name) => bytes >= (byteUnits[name] ?? Infinity))
  return unit === undefined ? `${bytes} B` : `${(bytes / (byteUnits[unit] ?? 1)).toFixed(1)} ${unit}`
}
