// How a registry of so many manifests looks: all numbers that the generator and the measurements share.

export interface Shape {
  /** Manifests; all else follows. */
  readonly size: number
  readonly accounts: number
  /** Repositories with manifests; the first has a hundredth of all manifests, and half of them have one or two. */
  readonly repositories: number
  readonly emptyRepositories: number
  /** Manifests of the repository of rank r: `constant / (r + flattening)`, at least 1. */
  readonly constant: number
  readonly flattening: number
  /** What is missing to the size goes to the first. */
  readonly surplus: number
  /** Blobs that no manifest names. */
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

/** The largest constant whose repositories hold no more than `size`. */
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
