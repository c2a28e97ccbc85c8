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
    refusals: ['body-invalid', 'login-invalid', 'route-unknown'],
  },
]
