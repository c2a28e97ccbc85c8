// Headers as a request brings them, for parsers that need no server.
export function headers(fields: Readonly<Record<string, string>>): Headers {
  return new Headers(fields)
}

export function basic(text: string): string {
  return `Basic ${Buffer.from(text).toString('base64')}`
}
