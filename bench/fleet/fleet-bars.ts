// The bars with PostgreSQL and S3: not slower than docker-registry on any path, and not more CPU for manifests.
import type { Comparison } from '../bars.ts'

export function fleetComparisons(title: string, isManifest: boolean): Comparison[] {
  const pair = { title, subject: 'berth', peer: 'docker-registry' } as const
  return [
    { ...pair, figure: 'speed', bar: { atLeast: 1 } },
    { ...pair, figure: 'cost', ...(isManifest && { bar: { atMost: 1 } }) },
  ]
}
