import type { Right } from '../ports/identity.ts'

/** Role -> rights, from the configuration. A role that is not in it gives nothing. */
export type RoleMap = ReadonlyMap<string, readonly Right[]>

export const allRights: readonly Right[] = ['pull', 'push', 'delete', 'operate']

export const defaultRoles: RoleMap = new Map<string, readonly Right[]>([
  ['admin', allRights],
  ['writer', ['pull', 'push', 'delete']],
  ['reader', ['pull']],
])

export function rightsOf(roles: readonly string[], map: RoleMap): ReadonlySet<Right> {
  return new Set(roles.flatMap((role) => map.get(role) ?? []))
}
