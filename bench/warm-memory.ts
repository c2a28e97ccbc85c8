// Makes sure that the memory a contestant is about to write into is memory the machine really has.
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The kernel keeps free memory by the size it was used in, and servers write anything between these two at a time: both
 * have to find theirs. The figures were found by trying, with a server of either kind.
 */
const passes = [
  { chunkBytes: 512 * 1024, share: 1.25 },
  { chunkBytes: 64 * 1024, share: 2.5 },
] as const

/**
 * A virtual machine hands memory it does not use back to its host. The first to touch it again pays for that: writing
 * 1 GiB into the page cache was seen to cost 0.2 CPU seconds or 2.5, depending on nothing but this. So before a server
 * is sent a blob of this size, the harness writes files, removes them, and pays.
 */
export function warmMemory(folder: string, blobSizeBytes: number): void {
  const path = join(folder, 'warm-memory.bin')
  for (const { chunkBytes, share } of passes) {
    const chunk = new Uint8Array(chunkBytes)
    const file = openSync(path, 'w')
    for (let written = 0; written < blobSizeBytes * share; written += chunkBytes) writeSync(file, chunk)
    closeSync(file)
    rmSync(path)
  }
}
