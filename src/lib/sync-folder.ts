import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** A new or removed name is durable only when its folder is synced too. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
