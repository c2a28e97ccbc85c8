import type { Operation } from '../operation.ts'

export const tokenOperations: readonly Operation[] = [
  {
    operationId: 'postToken',
    part: 'identity',
    method: 'post',
    path: '/token/auth',
    summary: 'A bearer token for a user name and a password',
    caller: 'anyone',
    requestBody: { required: true, content: { 'application/json': 'TokenRequest' } },
    answers: {
      200: {
        description: 'The token, good for 86400 seconds.',
        headers: { 'Cache-Control': 'always' },
        content: { 'application/json': 'TokenResponse' },
      },
    },
    // The route is unknown where another service is the identity service.
    refusals: ['body-invalid', 'login-invalid', 'too-many-failures', 'route-unknown'],
  },
  {
    operationId: 'getKeySet',
    part: 'identity',
    method: 'get',
    path: '/jwks.json',
    summary: 'The public keys that tokens can be checked with',
    description: 'A new key appears here some time before it signs, and stays until all that it signed is over.',
    caller: 'anyone',
    answers: {
      200: {
        description: 'The keys.',
        headers: { 'Cache-Control': 'always' },
        content: { 'application/json': 'KeySet' },
      },
    },
    refusals: ['route-unknown'],
  },
]
