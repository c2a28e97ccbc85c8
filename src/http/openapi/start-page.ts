import type { Operation } from './operation.ts'

export const startPageOperations: readonly Operation[] = [
  {
    operationId: 'getStartPage',
    part: 'start',
    method: 'get',
    path: '/',
    summary: 'What is this server, and how is it used?',
    description:
      'A page for clients that prefer `text/html` in `Accept`, as browsers do; JSON for all others. It tells nothing about the content.',
    caller: 'anyone',
    needsNothing: true,
    answers: {
      200: {
        description: 'The version, and the commands to sign in, push and pull at the address of this request.',
        headers: {
          Vary: 'always',
          'Cache-Control': 'always',
          'Content-Security-Policy': 'sometimes',
          'Referrer-Policy': 'sometimes',
        },
        content: { 'application/json': 'ServerDescription', 'text/html; charset=utf-8': 'bytes' },
      },
    },
  },
]
