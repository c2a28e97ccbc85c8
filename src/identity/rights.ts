import type { Grant, Principal, Right } from '../ports/identity.ts'

/** Role -> rights, from the configuration. Other roles give no rights. */
export type RoleMap = ReadonlyMap<string, readonly Right[]>

export const allRights: readonly Right[] = ['pull', 'push', 'delete', 'operate']

export const defaultRoles: RoleMap = new Map<string, readonly Right[]>([
  ['admin', allRights],
  ['writer', ['pull', 'push', 'delete']],
  ['reader', ['pull']],
])

export function isRight(text: string): text is Right {
  return (allRights as readonly string[]).includes(text)
}

export function rightsOf(roles: readonly string[], map: RoleMap): ReadonlySet<Right> {
  return new Set(roles.flatMap((role) => map.get(role) ?? []))
}

/** All rights of the principal, over any repository. */
export function allRightsOf({ grants }: Pick<Principal, 'grants'>): ReadonlySet<Right> {
  return new Set(grants.flatMap((grant) => [...grant.rights]))
}

/** The rights over the whole account. Only these can be given to others. */
export function unlimitedRightsOf({ grants }: Pick<Principal, 'grants'>): ReadonlySet<Right> {
  return allRightsOf({ grants: grants.filter((grant) => grant.repositories === undefined) })
}

/** A grant of those rights that `limits` allow, over the repositories of `limits`. */
export function grantOf(
  rights: ReadonlySet<Right>,
  limits: Pick<Grant, 'repositories'> & { rights?: readonly Right[] | undefined },
): Grant {
  const allowed = limits.rights === undefined ? rights : rights.intersection(new Set(limits.rights))
  return limits.repositories === undefined
    ? { rights: allowed }
    : { rights: allowed, repositories: limits.repositories }
}
