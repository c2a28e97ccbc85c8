/** The digest of a file's bytes, read as a stream. */
export async function hashFile(path: string, algorithm: 'sha256' | 'sha512' = 'sha256'): Promise<string> {
  const hasher = new Bun.CryptoHasher(algorithm)
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk)
  return `${algorithm}:${hasher.digest('hex')}`
}
