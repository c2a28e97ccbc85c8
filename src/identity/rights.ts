import type { Grant, Principal, Right } from '../ports/identity.ts'

/** Role -> rights, from the configuration. A role that is not in it gives nothing. */
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

/** All rights that the principal has anywhere. */
export function allRightsOf({ grants }: Pick<Principal, 'grants'>): ReadonlySet<Right> {
  return new Set(grants.flatMap((grant) => [...grant.rights]))
}

/** Rights over the whole account alone: what somebody can pass on to others. */
export function unlimitedRightsOf({ grants }: Pick<Principal, 'grants'>): ReadonlySet<Right> {
  return allRightsOf({ grants: grants.filter((grant) => grant.repositories === undefined) })
}

/** One grant: of the rights only those that `limits` leave, in the repositories that they name. */
export function grantOf(
  rights: ReadonlySet<Right>,
  limits: Pick<Grant, 'repositories'> & { rights?: readonly Right[] | undefined },
): Grant {
  const left = limits.rights === undefined ? rights : rights.intersection(new Set(limits.rights))
  return limits.repositories === undefined ? { rights: left } : { rights: left, repositories: limits.repositories }
}
