/** A version of the form 1.2.3 or 1.2.3-rc.1, with or without `v` before it. A tag cannot contain build metadata (`+`). */
export interface SemanticVersion {
  readonly major: number
  readonly minor: number
  readonly patch: number
  /** Undefined: a released version. */
  readonly preRelease: string | undefined
}

// semver.org: numbers have no leading zeros. Fifteen digits fit exactly into a number.
const number = '(0|[1-9][0-9]{0,14})'
const form = new RegExp(`^v?${number}\\.${number}\\.${number}(?:-([0-9A-Za-z.-]+))?$`)

/** Undefined if the text is no semantic version. */
export function parseSemanticVersion(text: string): SemanticVersion | undefined {
  const [, major, minor, patch, preRelease] = form.exec(text) ?? []
  if (major === undefined || preRelease?.split('.').some((part) => part === '' || /^0[0-9]+$/.test(part)))
    return undefined
  return { major: Number(major), minor: Number(minor), patch: Number(patch), preRelease }
}
