// Every set of rights that there is, and a configuration with a role for each.
import { allRights } from '../../../src/identity/rights.ts'
import type { Right } from '../../../src/ports/identity.ts'

export interface RightSet {
  /** `pull+push`, or `nothing`; also the name of the role that gives it. */
  readonly name: string
  readonly rights: readonly Right[]
}

export const rightSets: readonly RightSet[] = Array.from({ length: 2 ** allRights.length }, (_, bits) => {
  const rights = allRights.filter((_, at) => (bits & (1 << at)) !== 0)
  return { name: rights.length === 0 ? 'nothing' : rights.join('-'), rights }
})

/** For `identity.roles`; `admin` stays what it is. */
export const rolesSetting = [
  'admin=pull+push+delete+operate',
  ...rightSets.map(({ name, rights }) => `${name}=${rights.join('+')}`),
].join(',')
