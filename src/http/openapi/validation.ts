import { Errors } from 'typebox/schema'
import { showName } from '../strict-json.ts'
import { type SchemaName, schemas } from './schemas.ts'

type ValidationError = ReturnType<typeof Errors>[1][number]

export interface BodyFault {
  /** Undefined when the body as a whole is at fault. */
  readonly field: string | undefined
  readonly reason: string
}

/**
 * What a text may contain is decided by the parsers of `identity`, whose messages say what is allowed. The schemas take
 * their patterns and lengths from these parsers.
 */
const textRules: ReadonlySet<string> = new Set(['pattern', 'minLength', 'maxLength', 'format'])

const structures = new Map<SchemaName, object>()

/** The schema without its rules on texts: members, types, choices, and numbers of entries. */
function structureOf(name: SchemaName): object {
  const cached = structures.get(name)
  if (cached !== undefined) return cached
  const isTextRule = (key: string, value: unknown) => textRules.has(key) && typeof value !== 'object'
  const text = JSON.stringify(schemas[name], (key, value) => (isTextRule(key, value) ? undefined : value))
  const structure: object = JSON.parse(text)
  structures.set(name, structure)
  return structure
}

/** The first fault of a parsed body. A member that is not allowed comes first, because it may be a misspelt name. */
export function findBodyFault(name: SchemaName, body: unknown): BodyFault | undefined {
  const [isValid, all] = Errors(structureOf(name), body)
  if (isValid) return undefined
  const errors = all.filter(isOwnError)
  const error = errors.find(({ keyword }) => keyword === 'additionalProperties') ?? errors[0]
  if (error === undefined) return { field: undefined, reason: 'is not valid' }
  return { field: fieldOf(error), reason: reasonOf(error, name) }
}

/** TypeBox also reports the schema around an error, and of a value that may be null, that it is not null. */
function isOwnError(error: ValidationError): boolean {
  if (error.keyword === 'anyOf' || error.keyword === 'boolean') return false
  return error.keyword !== 'type' || error.params.type !== 'null'
}

/** `/roles/1` becomes `roles[1]`. */
function fieldOf(error: ValidationError): string | undefined {
  if (error.keyword === 'required') return error.params.requiredProperties[0]
  if (error.keyword === 'additionalProperties') return showName(error.params.additionalProperties[0] ?? '')
  const [, name, index] = error.instancePath.split('/')
  return name === undefined || index === undefined ? name : `${name}[${index}]`
}

const typeReasons: Readonly<Record<string, string>> = {
  string: 'must be a string',
  boolean: 'must be true or false',
  array: 'must be an array of strings',
  object: 'must be a JSON object',
}

/** Continues the name of the field: `must be a string`. */
function reasonOf(error: ValidationError, name: SchemaName): string {
  switch (error.keyword) {
    case 'required':
      return 'is required'
    case 'additionalProperties':
      return `is not a member of this body, which can have ${membersOf(name).join(', ')}`
    case 'type':
      return typeReasons[String(error.params.type)] ?? error.message
    case 'enum':
      return `must be one of ${error.params.allowedValues.join(', ')}`
    case 'maxItems':
      return `must have at most ${error.params.limit} entries`
    default:
      return error.message
  }
}

function membersOf(name: SchemaName): readonly string[] {
  const schema: object = schemas[name]
  return 'properties' in schema ? Object.keys(schema.properties ?? {}) : []
}
