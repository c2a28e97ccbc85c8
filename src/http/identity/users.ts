import { unlimitedRightsOf } from '../../identity/rights.ts'
import {
  addUser,
  changeUser,
  checkMayManage,
  checkMaySetPassword,
  getUser as findUserOrRefuse,
  parsePassword,
  parseRoles,
  parseUserName,
  showUser,
} from '../../identity/users.ts'
import { toPage } from '../../registry/pages.ts'
import { type Answer, type CallerExchange, jsonAnswer } from '../exchange.ts'
import { optionalFlagOf, optionalTextOf, optionalTextsOf, readJsonObject, textOf } from '../json-body.ts'
import { nextPage } from '../links.ts'
import { identityPrefix } from '../mounts.ts'
import { parsePage } from '../pages.ts'
import { bodyBytesMax, embeddedOf, findManaged, forNobodyElse, managedBy } from './managing.ts'

/** GET /api/2021-02-21/users - the users of the caller's account. */
export async function getUsers({ app, principal, target }: CallerExchange): Promise<Answer> {
  embeddedOf({ app })
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = limit === 0 ? [] : await app.metadata.users.list(principal.account, after, limit + 1)
  const { items, hasMore } = toPage(page, limit)
  const last = items.at(-1)?.name
  const link = hasMore && last !== undefined
  return jsonAnswer(
    200,
    { users: items.map(showUser) },
    link ? { ...forNobodyElse, link: nextPage(`${identityPrefix}/users`, { n: String(limit), last }) } : forNobodyElse,
  )
}

/** POST /api/2021-02-21/users - a new user of the caller's account. */
export async function postUser(exchange: CallerExchange): Promise<Answer> {
  const { app, principal } = exchange
  const { roles: map, usersPerAccountMax } = embeddedOf(exchange)
  const body = await readJsonObject(exchange, bodyBytesMax, { members: ['name', 'roles', 'password'] })
  const name = parseUserName(textOf(body, 'name'))
  const roles = parseRoles(optionalTextsOf(body, 'roles') ?? [])
  const password = optionalTextOf(body, 'password')
  checkMayManage(unlimitedRightsOf(principal), roles, map)
  if (password !== undefined) checkMaySetPassword(principal)
  const request = {
    name,
    roles,
    account: principal.account,
    password: password === undefined ? undefined : parsePassword(password),
  }
  const user = await addUser(app, request, usersPerAccountMax)
  return jsonAnswer(201, showUser(user), { ...forNobodyElse, location: `${identityPrefix}/users/${user.name}` })
}

/** GET /api/2021-02-21/users/{user} */
export async function getUser({ app, principal, path }: CallerExchange): Promise<Answer> {
  embeddedOf({ app })
  return jsonAnswer(
    200,
    showUser(await findUserOrRefuse(app.metadata, path['user'] ?? '', principal.account)),
    forNobodyElse,
  )
}

/** PATCH /api/2021-02-21/users/{user} - what is not named stays. */
export async function patchUser(exchange: CallerExchange): Promise<Answer> {
  const { app, principal, path } = exchange
  const { roles: map } = embeddedOf(exchange)
  const body = await readJsonObject(exchange, bodyBytesMax, { members: ['roles', 'disabled', 'password'] })
  // Only now: who the user is may have changed while the body came.
  await findManaged(exchange)
  const given = optionalTextsOf(body, 'roles')
  const roles = given === undefined ? undefined : parseRoles(given)
  if (roles !== undefined) checkMayManage(unlimitedRightsOf(principal), roles, map)
  const password = optionalTextOf(body, 'password')
  if (password !== undefined) checkMaySetPassword(principal)
  const isDisabled = optionalFlagOf(body, 'disabled')
  const change = {
    ...(roles === undefined ? {} : { roles }),
    ...(isDisabled === undefined ? {} : { isDisabled }),
    ...(password === undefined ? {} : { password: parsePassword(password) }),
  }
  const needs = { metadata: app.metadata, roles: map }
  const changed = await changeUser(needs, path['user'] ?? '', change, managedBy(exchange))
  app.identity.forgetAll()
  return jsonAnswer(200, showUser(changed), forNobodyElse)
}
