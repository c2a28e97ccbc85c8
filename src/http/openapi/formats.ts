import { Type } from 'typebox'
import { keyNamePattern } from '../../identity/api-keys.ts'
import { rolePattern, userNamePattern } from '../../identity/users.ts'
import { digestLengthMax, hexLength, wellFormedDigestPattern } from '../../oci/digest.ts'
import { nameLengthMax, namePattern, tagPattern } from '../../oci/names.ts'
import { chunkRange } from '../ranges.ts'

// Schemas of single texts, made of the very patterns that the parsers use, so that the document promises what they take.

function matching(pattern: RegExp, maxLength?: number) {
  return Type.String({ pattern: pattern.source, ...(maxLength === undefined ? {} : { maxLength }) })
}

/** The pattern without its anchors, to be a part of another. */
function unanchored({ source }: RegExp): string {
  return source.replace(/^\^/, '').replace(/\$$/, '')
}

const algorithms = Object.keys(hexLength)
const supported = Object.entries(hexLength).map(([algorithm, digits]) => `${algorithm}:[a-f0-9]{${digits}}`)
const ofOthers = `(?!(?:${algorithms.join('|')}):)${unanchored(wellFormedDigestPattern)}`

/** A digest that content can be stored under. */
export const digest = matching(new RegExp(`^(?:${supported.join('|')})$`))
/** A digest of any algorithm: a subject can have one that nothing here is stored under. */
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
