// Writes the reference pages that follow from the code: `npm run docs`. A test compares them with what it would write.
import { join } from 'node:path'
import { settingsTable } from '../src/app/settings.ts'
import { errorTable } from '../src/http/error-body.ts'
import type { Route } from '../src/http/route.ts'
import { registryRoutes, serviceRoutes } from '../src/http/routes.ts'
import { type Refusal, refusalWords } from '../src/oci/errors.ts'

const notice = '<!-- Written by `npm run docs`; a test holds it to the code. -->'

function variables(own: string, usual: string | undefined): string {
  return usual === undefined ? `\`${own}\`` : `\`${own}\`, or \`${usual}\``
}

function settingsPage(): string {
  const rows = Object.values(settingsTable).map(
    ({ name, variable, usualVariable, kind, meaning }) =>
      `| \`${name}\` | ${variables(variable, usualVariable)} | ${kind.fallbackText === '' ? '' : `\`${kind.fallbackText}\``} | ${meaning} Takes ${kind.allowed}. |`,
  )
  return `# Settings

${notice}

From the file \`berth.yaml\` (or \`--config <file>\`), and above it from the environment. \`server.port\` is \`port\` below \`server\` in the file, and
\`BERTH_SERVER__PORT\` in the environment. A name that is not here is a fault; all faults are told at once, with exit code 2. \`npm run berth -- config\`
prints the settings in force, with secrets masked. With \`--output yaml\` or \`json\` it prints them as a settings file
that gives the same configuration; the secrets are left out unless \`--show-secrets\` is given.

| Setting | Environment | Default | Meaning |
|---|---|---|---|
${rows.join('\n')}
`
}

function errorsPage(): string {
  const rows = (Object.keys(refusalWords) as Refusal[]).map(
    (refusal) =>
      `| \`${refusal}\` | ${errorTable[refusal].status} | \`${errorTable[refusal].code}\` | ${refusalWords[refusal]} |`,
  )
  return `# Errors

${notice}

Below \`/v2/\` the body is \`{"errors":[{"code","message","detail"}],"msg"}\`; elsewhere it is \`{"msg"}\`. HEAD has none. A 401 carries one challenge,
\`WWW-Authenticate: Basic realm="Berth", charset="UTF-8"\`, or in the registry, where \`auth.challenge\` is \`bearer\`, one of Bearer. Besides these: 503 \`UNAVAILABLE\` with \`Retry-After\` when a store does not answer, and 500
\`UNKNOWN\` with the request's number for a mistake of ours.

| Refusal | Status | Code | Message |
|---|---|---|---|
${rows.join('\n')}
`
}

function access(route: Route): string {
  if (route.access === 'anyone') return 'anyone'
  return route.right ?? 'any known caller'
}

function routeRows(routes: readonly Route[], prefix: string): string {
  const rows = routes.map(
    (route) => `| ${route.method} | \`${prefix}${route.pattern}\` | ${access(route)} | ${route.operationId} |`,
  )
  return ['| Method | Path | Who | Operation |', '|---|---|---|---|', ...rows].join('\n')
}

function interfacePage(): string {
  return `# The interface

${notice}

\`GET /api/2023-12-28/openapi.json\` describes all of it in full. GET stands for HEAD too. Rights come from roles (\`identity.roles\`): \`admin\` has all, \`writer\`
pull, push and delete, \`reader\` pull.

## Registry

At \`/v2\` and at \`/api/2023-12-28/v2\`; \`{name}\` may hold slashes.

${routeRows(registryRoutes, '')}

## Service, identity, probes

${routeRows(serviceRoutes, '')}

## Credentials

The first that is present decides; a bad one is not rescued by another.

1. \`Authorization\`: \`Bearer <token>\`, \`Basic apikey:<key>\`, \`Basic bearer:<token>\`
2. \`X-API-KEY: <key>\`
3. \`?apiKey=<key>\`
4. the cookie \`svc-auth=<token>\`; requests that change something must come from the same site

Basic credentials of an empty name and an empty password are none: some clients send them when they have nothing.

## Known quirks

See [where the documents are silent](../decisions/0010-where-the-documents-are-silent.md).
`
}

/** Page -> its text, as the code has it now. */
export function referencePages(): ReadonlyMap<string, string> {
  return new Map([
    ['docs/reference/configuration.md', settingsPage()],
    ['docs/reference/errors.md', errorsPage()],
    ['docs/reference/api.md', interfacePage()],
  ])
}

if (import.meta.main) {
  for (const [path, text] of referencePages()) await Bun.write(join(import.meta.dir, '..', path), text)
}
