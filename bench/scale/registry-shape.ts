// The shape of a registry of a given size: the numbers that the generator and the measurements share.

export interface Shape {
  /** The number of manifests. All other numbers follow from it. */
  readonly size: number
  readonly accounts: number
  /**
   * Repositories with manifests. The first has one percent of all manifests, and half of the repositories have one or
   * two.
   */
  readonly repositories: number
  readonly emptyRepositories: number
  /** The repository of rank r has `constant / (r + flattening)` manifests, at least 1. */
  readonly constant: number
  readonly flattening: number
  /** The remaining manifests belong to the first repository. */
  readonly surplus: number
  /** Blobs to which no manifest refers. */
  readonly looseBlobs: number
  readonly uploads: number
  readonly trash: number
  readonly users: number
}

const flattening = 10

/** A prime, so that multiplying by it shuffles the numbers below any size that it does not divide. */
export const shuffler = 7_368_787

export function shapeOf(size: number): Shape {
  const repositories = size / 10
  const constant = findConstant(size, repositories)
  return {
    size,
    accounts: Math.max(20, size / 1000),
    repositories,
    emptyRepositories: repositories / 20,
    constant,
    flattening,
    surplus: size - countManifests(constant, repositories),
    looseBlobs: size / 100,
    uploads: size / 100,
    trash: size / 100,
    users: Math.max(100, size / 100),
  }
}

/** The largest constant with which the repositories have at most `size` manifests. */
function findConstant(size: number, repositories: number): number {
  let [low, high] = [0, size]
  while (high - low > 1e-6 * size) {
    const middle = (low + high) / 2
    if (countManifests(middle, repositories) <= size) low = middle
    else high = middle
  }
  return low
}

function countManifests(constant: number, repositories: number): number {
  let sum = 0
  for (let rank = 1; rank <= repositories; rank += 1) sum += Math.max(1, Math.floor(constant / (rank + flattening)))
  return sum
}
