import type { Operation } from '../operation.ts'

export const apiKeyOperations: readonly Operation[] = [
  {
    operationId: 'getApiKeys',
    part: 'identity',
    method: 'get',
    path: '/users/{user}/keys',
    summary: 'The API keys of a user, but never the keys themselves',
    caller: 'operate',
    parameters: ['user'],
    answers: {
      200: {
        description: 'The keys, by name.',
        headers: { 'Cache-Control': 'always' },
        content: { 'application/json': 'ApiKeysResponse' },
      },
    },
    refusals: ['user-unknown', 'route-unknown'],
  },
  {
    operationId: 'postApiKey',
    part: 'identity',
    method: 'post',
    path: '/users/{user}/keys',
    summary: 'A new API key, shown here and never again',
    description:
      'It can be limited to some rights and some repositories. A key never can do more than the caller, and expires no later than the API key of the caller.',
    caller: 'operate',
    parameters: ['user'],
    requestBody: { required: true, content: { 'application/json': 'NewApiKeyRequest' } },
    answers: {
      201: {
        description: 'The key.',
        headers: { 'Cache-Control': 'always', Location: 'always' },
        content: { 'application/json': 'NewApiKeyResponse' },
      },
    },
    refusals: ['body-invalid', 'identity-invalid', 'user-unknown', 'key-exists', 'too-many-keys', 'route-unknown'],
  },
  {
    operationId: 'deleteApiKey',
    part: 'identity',
    method: 'delete',
    path: '/users/{user}/keys/{key}',
    summary: 'Revoke an API key',
    caller: 'operate',
    parameters: ['user', 'key'],
    answers: { 204: { description: 'It is good no more.', headers: { 'Cache-Control': 'always' } } },
    refusals: ['user-unknown', 'key-unknown', 'route-unknown'],
  },
]
