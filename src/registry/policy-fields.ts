import { parseDuration } from '../lib/quantities.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../oci/repository-pattern.ts'
import { parseTagPattern, type TagPattern } from '../oci/tag-pattern.ts'

/** How many rules a policy has at most, and how many patterns a list of a rule. */
export const rulesMax = 50
export const patternsMax = 50

const ageMaxMs = 100 * 365 * 86_400_000

/** A value in the JSON of a policy, and its path: `rules[1].tags[0]`. A refusal names the path. */
export class PolicyField {
  readonly value: unknown
  readonly #path: string

  constructor(value: unknown, path = '') {
    this.value = value
    this.#path = path
  }

  get isGiven(): boolean {
    return this.value !== undefined
  }

  refuse(reason: string): never {
    throw new RegistryRefusal('body-invalid', this.#path === '' ? { reason } : { field: this.#path, reason })
  }

  /** The members of an object. Refuses members with other names. */
  members<Name extends string>(names: readonly Name[]): Readonly<Record<Name, PolicyField>> {
    const { value } = this
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.refuse('must be a JSON object')
    const given = new Map<string, unknown>(Object.entries(value))
    for (const name of given.keys()) {
      if (!(names as readonly string[]).includes(name)) {
        this.#member(/^\w{1,64}$/.test(name) ? name : JSON.stringify(name.slice(0, 64))).refuse(
          `is not a member here, which can be ${names.join(', ')}`,
        )
      }
    }
    const fields = names.map((name) => [name, this.#member(name, given.get(name))] as const)
    return Object.fromEntries(fields) as Record<Name, PolicyField>
  }

  #member(name: string, value?: unknown): PolicyField {
    return new PolicyField(value, this.#path === '' ? name : `${this.#path}.${name}`)
  }

  list<T>(max: number, parse: (entry: PolicyField) => T): T[] {
    const { value } = this
    if (!Array.isArray(value)) return this.refuse('must be an array')
    if (value.length > max) return this.refuse(`must have at most ${max} entries`)
    return value.map((entry: unknown, at) => parse(new PolicyField(entry, `${this.#path}[${at}]`)))
  }

  text(): string {
    return typeof this.value === 'string' ? this.value : this.refuse('must be a string')
  }

  flag(): boolean {
    return typeof this.value === 'boolean' ? this.value : this.refuse('must be true or false')
  }

  count(max: number): number {
    const { value } = this
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value
    return this.refuse(`must be a whole number from 1 to ${max}`)
  }

  /** A duration, in milliseconds. */
  ageMs(): number {
    const text = this.text()
    const ms = /[a-z]$/.test(text) ? parseDuration(text) : undefined
    return ms !== undefined && ms <= ageMaxMs ? ms : this.refuse('must be a duration such as 12h or 30d')
  }

  /** Absent: all repositories. */
  repositories(): RepositoryPattern[] {
    return this.isGiven ? this.#some((entry) => entry.#repository()) : [allRepositories]
  }

  /** Absent: all tags. */
  tags(): TagPattern[] {
    return this.isGiven ? this.#some((entry) => entry.#tag()) : [allTags]
  }

  exceptRepositories(): RepositoryPattern[] {
    return this.isGiven ? this.list(patternsMax, (entry) => entry.#repository()) : []
  }

  exceptTags(): TagPattern[] {
    return this.isGiven ? this.list(patternsMax, (entry) => entry.#tag()) : []
  }

  #some<T>(parse: (entry: PolicyField) => T): T[] {
    const list = this.list(patternsMax, parse)
    return list.length > 0 ? list : this.refuse('must have an entry; without this member, all match')
  }

  #repository(): RepositoryPattern {
    const reason = 'must be the name of a repository, or a name with up to four `*`, each for any text'
    return parseRepositoryPattern(this.text()) ?? this.refuse(reason)
  }

  #tag(): TagPattern {
    const reason = 'must be a tag with wildcards: `*`, `?`, `[0-9]`, `{a,b}`; or {semver}'
    return parseTagPattern(this.text()) ?? this.refuse(reason)
  }
}

const allRepositories = '*' as RepositoryPattern
export const allTags = '*' as TagPattern
