import { readConfig } from '../app/config.ts'
import { openStores, type Stores } from '../app/stores.ts'
import { changing } from '../registry/read-only.ts'

type Config = ReturnType<typeof readConfig>

/** What a command works with: the settings in force, and the stores that they name. */
export interface Workplace extends Stores {
  readonly config: Config
}

/** The option that every command has. */
export const configOption = ['--config <file>', 'settings file (default: berth.yaml, if it is there)'] as const

/** Commands live in the present: nobody has to move their clock. */
export const presentClock = { now: () => Date.now() }

/** Opens the stores for the work, and closes them however it ends. There must be some, unless the work is to begin with. */
export async function withStores(
  file: string | undefined,
  work: (place: Workplace) => Promise<void>,
  { mustBeThere = true } = {},
): Promise<void> {
  const config = readConfig(file)
  const stores = await openStores(config, { mustBeThere })
  try {
    await work({ config, ...stores })
  } finally {
    await stores.metadata.close()
    await stores.blobs.close()
  }
}

/** Work that changes something: refused while the registry is being moved. */
export function asChange(work: (place: Workplace) => Promise<void>): (place: Workplace) => Promise<void> {
  return (place) => changing(place, () => work(place))
}

/** As `withStores`, where users and their keys are ours. */
export async function withUsers(
  file: string | undefined,
  work: (place: Workplace) => Promise<void>,
  options?: { readonly mustBeThere: boolean },
): Promise<void> {
  const { authUrl } = readConfig(file)
  if (authUrl !== undefined) throw new Error(`users and their keys are kept by the identity service at ${authUrl}`)
  await withStores(file, work, options)
}
