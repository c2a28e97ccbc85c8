import { parseRoles, parseUserName } from '../../identity/names.ts'
import { parsePassword } from '../../identity/passwords.ts'
import { unlimitedRightsOf } from '../../identity/rights.ts'
import {
  addUser,
  changeUser,
  checkMayManage,
  checkMaySetPassword,
  getUser as findUserOrRefuse,
  showUser,
} from '../../identity/users.ts'
import { toPage } from '../../registry/pages.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import { type CallerExchange, getEmbeddedIdentity } from '../exchange.ts'
import { jsonBody, readJson } from '../json-body.ts'
import { identityPrefix } from '../mounts.ts'
import { nextPageHeaders, parsePage } from '../paging.ts'
import { type DocumentedAnswer, json, type Route } from '../route.ts'
import { bodyBytesMax, checkManagedBy, getManagedUser, noStore } from './user-management.ts'

const userAnswer: DocumentedAnswer = {
  description: 'The user.',
  headers: { 'Cache-Control': 'always' },
  content: json('UserResponse'),
}

const newUser = jsonBody('NewUserRequest', bodyBytesMax)
const userChange = jsonBody('UserChangeRequest', bodyBytesMax)

export const userRoutes: readonly Route[] = [
  {
    operationId: 'getUsers',
    method: 'GET',
    pattern: `${identityPrefix}/users`,
    access: 'known caller',
    right: 'operate',
    handle: getUsers,
    summary: 'List the users of the account',
    onlyWith: 'embedded identity',
    parameters: ['n', 'last'],
    answers: {
      200: {
        description: 'The users, ordered by name.',
        headers: { 'Cache-Control': 'always', Link: 'sometimes' },
        content: json('UsersResponse'),
      },
    },
    refusals: ['page-size-invalid'],
  },
  {
    operationId: 'postUser',
    method: 'POST',
    pattern: `${identityPrefix}/users`,
    access: 'known caller',
    right: 'operate',
    handle: postUser,
    summary: 'Create a user of the account',
    description:
      'Refused for roles with rights that the caller lacks. An API key that expires cannot set a password. The setting `limits.users_per_account` limits the number of users of an account.',
    onlyWith: 'embedded identity',
    requestBody: newUser,
    answers: { 201: { ...userAnswer, headers: { 'Cache-Control': 'always', Location: 'always' } } },
    refusals: ['body-invalid', 'identity-invalid', 'user-exists', 'too-many-users'],
  },
  {
    operationId: 'getUser',
    method: 'GET',
    pattern: `${identityPrefix}/users/{user}`,
    access: 'known caller',
    right: 'operate',
    handle: getUser,
    summary: 'Get a user',
    onlyWith: 'embedded identity',
    answers: { 200: userAnswer },
    refusals: ['user-unknown'],
  },
  {
    operationId: 'patchUser',
    method: 'PATCH',
    pattern: `${identityPrefix}/users/{user}`,
    access: 'known caller',
    right: 'operate',
    handle: patchUser,
    summary: 'Change the roles or the password of a user, or disable or enable the user',
    description:
      'A new password and a disabled user end the tokens of the user, except tokens from `/v2/_token`, which work until they expire. Refused for users with rights that the caller lacks, and if no user of the account would be left with the right `operate`. An API key that expires cannot set a password.',
    onlyWith: 'embedded identity',
    requestBody: userChange,
    answers: { 200: userAnswer },
    refusals: ['body-invalid', 'identity-invalid', 'user-unknown', 'last-operator'],
  },
]

async function getUsers({ app, principal, target }: CallerExchange): Promise<Answer> {
  getEmbeddedIdentity(app)
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = limit === 0 ? [] : await app.metadata.users.list(principal.account, after, limit + 1)
  const { items, hasMore } = toPage(page, limit)
  const last = hasMore ? items.at(-1)?.name : undefined
  const headers = { ...noStore, ...nextPageHeaders(`${identityPrefix}/users`, limit, last) }
  return jsonAnswer(200, { users: items.map(showUser) }, headers)
}

async function postUser(exchange: CallerExchange): Promise<Answer> {
  const { app, principal } = exchange
  const { roles: map, usersPerAccountMax } = getEmbeddedIdentity(app)
  const body = await readJson(exchange, newUser)
  const name = parseUserName(body.name)
  const roles = parseRoles(body.roles ?? [])
  const { password } = body
  checkMayManage(unlimitedRightsOf(principal), roles, map)
  if (password !== undefined) checkMaySetPassword(principal)
  const request = {
    name,
    roles,
    account: principal.account,
    password: password === undefined ? undefined : parsePassword(password),
  }
  const user = await addUser(app, request, usersPerAccountMax)
  return jsonAnswer(201, showUser(user), { ...noStore, location: `${identityPrefix}/users/${user.name}` })
}

async function getUser({ app, principal, path }: CallerExchange): Promise<Answer> {
  getEmbeddedIdentity(app)
  return jsonAnswer(200, showUser(await findUserOrRefuse(app.metadata, path['user'] ?? '', principal.account)), noStore)
}

async function patchUser(exchange: CallerExchange): Promise<Answer> {
  const { app, principal, path } = exchange
  const { roles: map } = getEmbeddedIdentity(app)
  const { roles: given, disabled: isDisabled, password } = await readJson(exchange, userChange)
  // After the body: the user may have changed while it arrived.
  await getManagedUser(exchange)
  const roles = given === undefined ? undefined : parseRoles(given)
  if (roles !== undefined) checkMayManage(unlimitedRightsOf(principal), roles, map)
  if (password !== undefined) checkMaySetPassword(principal)
  const change = {
    ...(roles === undefined ? {} : { roles }),
    ...(isDisabled === undefined ? {} : { isDisabled }),
    ...(password === undefined ? {} : { password: parsePassword(password) }),
  }
  const needs = { metadata: app.metadata, roles: map }
  const changed = await changeUser(needs, path['user'] ?? '', change, checkManagedBy(exchange))
  await app.identity.clear()
  return jsonAnswer(200, showUser(changed), noStore)
}
