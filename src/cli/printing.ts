/** Output for programs: only the JSON, on standard output. */
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

/** A message for people, on standard error. console.error would print in red on a terminal. */
export function tell(text: string): void {
  process.stderr.write(`berth: ${text}\n`)
}

export function warn(text: string): void {
  tell(`warning: ${text}`)
}

/** `2030-01-31 12:00Z`, or `otherwise` if there is no time. */
export function showTime(ms: number | undefined, otherwise: string): string {
  return ms === undefined ? otherwise : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')}Z`
}

/** Replaces control characters, which could end a line or control the terminal. */
export function withoutControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '?')
}
