/** What a program wants to read: the answer alone, on standard output. */
export function printJson(value: unknown): void {
  console.log(JSON.stringify(value, null, 2))
}

/** Columns as wide as their longest cell. */
export function printTable(headings: readonly string[], rows: readonly (readonly string[])[]): void {
  const lines = [headings, ...rows].map((cells) => cells.map(withoutControls))
  const widths = headings.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  for (const cells of lines) {
    console.log(
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}

/** For whoever sits there, and in no pipe's way. Not by console.error, which paints a terminal red. */
export function tell(text: string): void {
  process.stderr.write(`berth: ${text}\n`)
}

export function warn(text: string): void {
  tell(`warning: ${text}`)
}

/** `2030-01-31 12:00Z`, or what stands there when there is no time. */
export function showTime(ms: number | undefined, otherwise: string): string {
  return ms === undefined ? otherwise : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')}Z`
}

/** Names from elsewhere must neither end a line nor steer a terminal. */
export function withoutControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '?')
}
