import { type TSchema, Type } from 'typebox'
import { keyNamePattern, rolePattern, userNamePattern } from '../../identity/names.ts'
import { digestLengthMax, hexLength, wellFormedDigestPattern } from '../../oci/digest.ts'
import { nameLengthMax, namePattern, tagPattern } from '../../oci/names.ts'
import { chunkRange } from '../ranges.ts'

// Schemas of single values. They use the patterns of the parsers, so that the document describes what the server
// accepts.

export type Schema = TSchema

export const text = Type.String()
export const wholeNumber = Type.Integer({ minimum: 0 })
export const reference = Type.String({ format: 'uri-reference' })
export const dateTime = Type.String({ format: 'date-time' })
export const uuid = Type.String({ format: 'uuid' })
/** `true` or `false`. */
export const flag = Type.Boolean()
export const manyTexts = Type.Array(Type.String())

function matching(pattern: RegExp, maxLength?: number) {
  return Type.String({ pattern: pattern.source, ...(maxLength === undefined ? {} : { maxLength }) })
}

/** The pattern without its anchors, to become a part of another pattern. */
function unanchored({ source }: RegExp): string {
  return source.replace(/^\^/, '').replace(/\$$/, '')
}

const algorithms = Object.keys(hexLength)
const supported = Object.entries(hexLength).map(([algorithm, digits]) => `${algorithm}:[a-f0-9]{${digits}}`)
const ofOthers = `(?!(?:${algorithms.join('|')}):)${unanchored(wellFormedDigestPattern)}`

/** A digest that content can be stored under. */
export const digest = matching(new RegExp(`^(?:${supported.join('|')})$`))
/** A digest of any algorithm. A subject may have a digest that content here cannot be stored under. */
export const anyDigest = matching(new RegExp(`^(?:${[...supported, ofOthers].join('|')})$`), digestLengthMax)
export const digestAlgorithm = Type.Enum(algorithms)
export const tag = matching(tagPattern)
export const tags = Type.Array(tag)
/** A tag or a digest. */
export const tagOrDigest = matching(new RegExp(`^(?:${[unanchored(tagPattern), ...supported].join('|')})$`))
export const imageName = matching(namePattern, nameLengthMax)
export const userName = matching(userNamePattern)
export const keyName = matching(keyNamePattern)
export const roleName = matching(rolePattern)
export const contentRange = matching(chunkRange)
