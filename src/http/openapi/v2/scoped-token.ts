import type { DocumentedAnswer, Operation } from '../operation.ts'

const token: DocumentedAnswer = {
  description: 'The token. It may be for less than was asked.',
  headers: { 'Cache-Control': 'always' },
  content: { 'application/json': 'ScopedTokenResponse' },
}

/** The routes are unknown where `auth.challenge` is `basic`. */
export const scopedTokenOperations: readonly Operation[] = [
  {
    operationId: 'getScopedToken',
    part: 'registry',
    method: 'get',
    path: '/v2/_token',
    summary: 'A short-lived token for some repositories',
    description:
      'For credentials in any of the carriers; for strangers, where `auth.anonymous_pull` opens repositories to them. Only where `auth.challenge` is `bearer`.',
    caller: 'anyone',
    parameters: ['scope', 'tokenService'],
    answers: { 200: token },
    refusals: ['unauthenticated', 'credentials-invalid', 'too-many-failures', 'route-unknown'],
  },
  {
    operationId: 'postScopedToken',
    part: 'registry',
    method: 'post',
    path: '/v2/_token',
    summary: 'The same, with everything in a form, as OAuth 2 has it',
    caller: 'anyone',
    requestBody: { required: true, content: { 'application/x-www-form-urlencoded': 'ScopedTokenForm' } },
    answers: { 200: token },
    refusals: [
      'body-invalid',
      'cross-site-request',
      'unauthenticated',
      'credentials-invalid',
      'too-many-failures',
      'route-unknown',
    ],
  },
]
