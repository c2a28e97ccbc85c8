import { unlimitedRightsOf } from '../../identity/rights.ts'
import {
  addUser,
  changeUser,
  checkMayManage,
  getUser as findUserOrRefuse,
  parsePassword,
  parseRoles,
  parseUserName,
  showUser,
} from '../../identity/users.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import type { User } from '../../ports/users.ts'
import { toPage } from '../../registry/pages.ts'
import { type Answer, type CallerExchange, type EmbeddedIdentityService, jsonAnswer } from '../exchange.ts'
import { optionalFlagOf, optionalTextOf, optionalTextsOf, readJsonObject, textOf } from '../json-body.ts'
import { nextPage } from '../links.ts'
import { identityPrefix } from '../mounts.ts'
import { parsePage } from '../pages.ts'

const bodyBytesMax = 16_384

/** Users exist where the identity service is ours; elsewhere nothing is at these addresses. */
export function embeddedOf({ app }: Pick<CallerExchange, 'app'>): EmbeddedIdentityService {
  if (app.embedded === undefined) throw new RegistryRefusal('route-unknown')
  return app.embedded
}

/** The user that the path names, of the caller's account, whom the caller may manage. */
export async function managedUser({ app, principal, path }: CallerExchange): Promise<User> {
  const { roles } = embeddedOf({ app })
  const user = await findUserOrRefuse(app.metadata, path['user'] ?? '', principal.account)
  checkMayManage(unlimitedRightsOf(principal), user.roles, roles)
  return user
}

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
    link ? { ...private_, link: nextPage(`${identityPrefix}/users`, { n: String(limit), last }) } : private_,
  )
}

/** POST /api/2021-02-21/users - a new user of the caller's account. */
export async function postUser(exchange: CallerExchange): Promise<Answer> {
  const { app, principal } = exchange
  const { roles: map } = embeddedOf(exchange)
  const body = await readJsonObject(exchange, bodyBytesMax, ['name', 'roles', 'password'])
  const name = parseUserName(textOf(body, 'name'))
  const roles = parseRoles(optionalTextsOf(body, 'roles') ?? [])
  const password = optionalTextOf(body, 'password')
  checkMayManage(unlimitedRightsOf(principal), roles, map)
  const user = await addUser(app.metadata, {
    name,
    roles,
    account: principal.account,
    password: password === undefined ? undefined : parsePassword(password),
  })
  return jsonAnswer(201, showUser(user), { ...private_, location: `${identityPrefix}/users/${user.name}` })
}

/** GET /api/2021-02-21/users/{user} */
export async function getUser({ app, principal, path }: CallerExchange): Promise<Answer> {
  embeddedOf({ app })
  return jsonAnswer(
    200,
    showUser(await findUserOrRefuse(app.metadata, path['user'] ?? '', principal.account)),
    private_,
  )
}

/** PATCH /api/2021-02-21/users/{user} - what is not named stays. */
export async function patchUser(exchange: CallerExchange): Promise<Answer> {
  const { app, principal } = exchange
  const user = await managedUser(exchange)
  const body = await readJsonObject(exchange, bodyBytesMax, ['roles', 'disabled', 'password'])
  const given = optionalTextsOf(body, 'roles')
  const roles = given === undefined ? undefined : parseRoles(given)
  if (roles !== undefined) checkMayManage(unlimitedRightsOf(principal), roles, embeddedOf(exchange).roles)
  const password = optionalTextOf(body, 'password')
  const isDisabled = optionalFlagOf(body, 'disabled')
  const changed = await changeUser(app.metadata, user, {
    ...(roles === undefined ? {} : { roles }),
    ...(isDisabled === undefined ? {} : { isDisabled }),
    ...(password === undefined ? {} : { password: parsePassword(password) }),
  })
  app.identity.forgetAll()
  return jsonAnswer(200, showUser(changed), private_)
}

const private_ = { 'cache-control': 'no-store' }
