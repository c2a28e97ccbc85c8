// A disk that is soon full: a tmpfs of a few MiB.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Need } from '../basics/needs.ts'

export interface SmallDisk {
  readonly path: string
  /** From now on it holds so many MiB. */
  grow(mebibytes: number): void
  remove(): void
}

function run(...command: string[]): { isDone: boolean; said: string } {
  const { success, stderr } = Bun.spawnSync(command, { stdout: 'ignore', stderr: 'pipe' })
  return { isDone: success, said: stderr.toString().trim() }
}

export function makeSmallDisk(mebibytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'berth-disk-'))
  const { isDone, said } = run('mount', '-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'tmpfs', path)
  if (!isDone) {
    rmSync(path, { recursive: true })
    throw new Error(said)
  }
  return {
    path,
    grow(mebibytes) {
      const { isDone, said } = run('mount', '-o', `remount,size=${mebibytes}m`, path)
      if (!isDone) throw new Error(said)
    },
    remove() {
      // A process that has just been killed may still hold files.
      for (let tries = 0; tries < 50 && !run('umount', path).isDone; tries += 1) Bun.sleepSync(100)
      rmSync(path, { recursive: true, force: true })
    },
  }
}

/** Whether this machine lets us mount, found out by doing it. */
export function canMount(): Need {
  if (process.platform !== 'linux') return { isMet: false, reason: 'only Linux has tmpfs' }
  try {
    makeSmallDisk(1).remove()
    return { isMet: true, reason: '' }
  } catch (error) {
    return { isMet: false, reason: `a tmpfs cannot be mounted here (root is needed): ${String(error)}` }
  }
}
