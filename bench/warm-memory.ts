// Makes sure that the machine has the memory that a contestant will write into.
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The kernel keeps free memory by the size of its use, and servers write sizes between these two. So both sizes must be
 * available. The figures were found by experiments with servers of both kinds.
 */
const passes = [
  { chunkBytes: 512 * 1024, share: 1.25 },
  { chunkBytes: 64 * 1024, share: 2.5 },
] as const

/**
 * A virtual machine returns unused memory to its host. The next program that touches it pays for this: writing
 * 1 GiB into the page cache cost 0.2 or 2.5 CPU seconds, depending only on this. So before a server receives a blob of
 * this size, the benchmark writes files and removes them.
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
