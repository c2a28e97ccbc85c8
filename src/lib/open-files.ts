import { readdirSync, readFileSync, statSync } from 'node:fs'

const folder = '/proc/self/fd'

/** How many descriptors this process has open; undefined where the system does not tell. Needs no descriptor on Linux 6.2 or newer. */
export function countOpenFiles(): number | undefined {
  try {
    return statSync(folder).size || readdirSync(folder).length
  } catch (error) {
    // An older kernel needs a descriptor to list them: without one, all of them are in use.
    return error instanceof Error && 'code' in error && error.code === 'EMFILE' ? openFilesMax() : undefined
  }
}

/** How many descriptors this process may have open. */
export function openFilesMax(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return undefined
  }
}
