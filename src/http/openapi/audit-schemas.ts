import { Type } from 'typebox'

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const AuditEntry = Type.Object({
  at: Type.String({ format: 'date-time', description: 'The first time, if it happened several times.' }),
  actor: textOrNull('The caller. Null: unknown.'),
  key: textOrNull('The name of the API key.'),
  credential: textOrNull('The fingerprint of the credential, as in the log.'),
  address: textOrNull('The address of the client.'),
  action: Type.String({ description: '`login`, an operation of this document, the type of an event, or a command.' }),
  target: textOrNull('The path of the request or of what it has created; for an event, the tag or the manifest.'),
  repository: textOrNull('The repository of the request.'),
  outcome: Type.Union([Type.Literal('done'), Type.Literal('refused')]),
  reason: textOrNull('Why it was refused.'),
  count: Type.Integer({ minimum: 1, description: 'How many times it happened.' }),
})

const AuditResponse = Type.Object({ entries: Type.Array(Type.Ref('#/components/schemas/AuditEntry')) })

export const auditSchemas = { AuditEntry, AuditResponse } as const
