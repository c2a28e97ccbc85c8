import { identityPrefix } from '../mounts.ts'

const carriersInOrder =
  'Of several carriers in one request the first present decides: Authorization, X-API-KEY, the query, the cookie.'

/** The two schemes that spec.md declares, and the other carriers that it lists. `authUrl`: of another identity service. */
export const securitySchemes = (authUrl = '') =>
  ({
    apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY', description: carriersInOrder },
    oauth2: {
      type: 'oauth2',
      description: `A token of the identity service, as a bearer token. ${carriersInOrder}`,
      flows: {
        implicit: {
          authorizationUrl: `${authUrl}${identityPrefix}/token/auth`,
          scopes: { 'dummy:dummy': 'A placeholder: rights come from roles, not from scopes.' },
        },
      },
    },
    bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    basic: {
      type: 'http',
      scheme: 'basic',
      description:
        'User name `apikey` with an API key as the password, or `bearer` with a token. Or the name of a user, with the password of that user or one of the API keys of that user.',
    },
    cookie: {
      type: 'apiKey',
      in: 'cookie',
      name: 'svc-auth',
      description:
        'A token. A request that changes something is refused with 403 when a page of another origin made the browser send it.',
    },
    apiKeyQuery: {
      type: 'apiKey',
      in: 'query',
      name: 'apiKey',
      description: 'For callers that cannot set headers. It is in no log and in no answer.',
    },
  }) as const

/** Any one of them, unless an operation says otherwise. */
export const security: readonly unknown[] = Object.keys(securitySchemes()).map((name) => ({
  [name]: name === 'oauth2' ? ['dummy:dummy'] : [],
}))
