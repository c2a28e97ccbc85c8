// Makes sure that the memory a contestant is about to write into is memory the machine really has.
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** The kernel keeps free memory by the size it was used in. Servers write between these two at a time: be fair to both. */
const chunkSizes = [512 * 1024, 64 * 1024]

/**
 * A virtual machine hands memory it does not use back to its host. The first to touch it again pays for that: writing
 * 1 GiB into the page cache was seen to cost 0.2 CPU seconds or 2.5, depending on nothing but this. So the harness
 * writes files of that size first, removes them, and pays.
 */
export function warmMemory(folder: string, sizeBytes: number): void {
  const path = join(folder, 'warm-memory.bin')
  for (const chunkSize of chunkSizes) {
    const chunk = new Uint8Array(chunkSize)
    const file = openSync(path, 'w')
    for (let written = 0; written < sizeBytes; written += chunkSize) writeSync(file, chunk)
    closeSync(file)
    rmSync(path)
  }
}
