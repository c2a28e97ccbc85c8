import type { DocumentedAnswer, Operation } from '../operation.ts'

const user: DocumentedAnswer = {
  description: 'The user.',
  headers: { 'Cache-Control': 'always' },
  content: { 'application/json': 'UserResponse' },
}

/** The embedded identity service alone has users; elsewhere these routes are unknown. */
export const userOperations: readonly Operation[] = [
  {
    operationId: 'getUsers',
    part: 'identity',
    method: 'get',
    path: '/users',
    summary: "The users of the caller's account",
    caller: 'operate',
    parameters: ['n', 'last'],
    answers: {
      200: {
        description: 'The users, by name.',
        headers: { 'Cache-Control': 'always', Link: 'sometimes' },
        content: { 'application/json': 'UsersResponse' },
      },
    },
    refusals: ['page-size-invalid', 'route-unknown'],
  },
  {
    operationId: 'postUser',
    part: 'identity',
    method: 'post',
    path: '/users',
    summary: "A new user of the caller's account",
    description:
      'Refused for roles with rights that the caller lacks. An API key that expires cannot set a password. The number of users of an account is limited by the setting `limits.users_per_account`.',
    caller: 'operate',
    requestBody: { required: true, content: { 'application/json': 'NewUserRequest' } },
    answers: { 201: { ...user, headers: { 'Cache-Control': 'always', Location: 'always' } } },
    refusals: ['body-invalid', 'identity-invalid', 'user-exists', 'too-many-users', 'route-unknown'],
  },
  {
    operationId: 'getUser',
    part: 'identity',
    method: 'get',
    path: '/users/{user}',
    summary: 'One user',
    caller: 'operate',
    parameters: ['user'],
    answers: { 200: user },
    refusals: ['user-unknown', 'route-unknown'],
  },
  {
    operationId: 'patchUser',
    part: 'identity',
    method: 'patch',
    path: '/users/{user}',
    summary: 'Other roles, another password, on or off',
    description:
      'A new password, or being disabled, ends all tokens of the user. Refused for users with rights that the caller lacks, and when nobody in the account would be left with the right `operate`. An API key that expires cannot set a password.',
    caller: 'operate',
    parameters: ['user'],
    requestBody: { required: true, content: { 'application/json': 'UserChangeRequest' } },
    answers: { 200: user },
    refusals: ['body-invalid', 'identity-invalid', 'user-unknown', 'last-operator', 'route-unknown'],
  },
]
