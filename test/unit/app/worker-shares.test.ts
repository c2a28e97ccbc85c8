import { describe, expect, test } from 'bun:test'
import { ConfigError, readConfig } from '../../../src/app/config.ts'
import { findWorkerContradictions, shareOfSupervisor, shareOfWorker } from '../../../src/app/workers/shares.ts'

const postgres = { BERTH_METADATA__URL: 'postgres://localhost/berth' }

describe('limits of a server', () => {
  test.each([2, 3, 4])('are divided among %i workers and never exceeded', (workers) => {
    const variables = { ...postgres, BERTH_SERVER__WORKERS: String(workers), BERTH_SERVER__CONNECTIONS_MAX: '1000' }
    const config = readConfig(undefined, variables)
    const share = shareOfWorker(config)
    const divided = [
      'connectionsMax',
      'memoryBytes',
      'databaseQueue',
      'authCalls',
      'authQueue',
      's3Requests',
      's3Queue',
      's3Buffers',
    ] as const
    for (const name of divided) {
      expect(share[name] * workers).toBeLessThanOrEqual(config[name])
      expect((share[name] + 1) * workers).toBeGreaterThan(config[name])
    }
    const ofWorkers = share.databaseConnections * workers
    expect(ofWorkers + shareOfSupervisor(config).databaseConnections).toBeLessThanOrEqual(config.databaseConnections)
  })

  test('that are too small for the workers are refused', () => {
    const read = (variables: Record<string, string>) => {
      try {
        readConfig(undefined, { BERTH_SERVER__WORKERS: '8', ...variables })
        return 'accepted'
      } catch (error) {
        return error instanceof ConfigError ? error.problems.join('; ') : String(error)
      }
    }
    expect(read({ BERTH_LIMITS__MEMORY: '64MiB' })).toContain('limits.memory must be at least 32 times')
    expect(read(postgres)).toContain('metadata.connections must be at least 18 with server.workers 8')
    expect(read({})).toBe('accepted')
  })

  test('need Linux with several workers', () => {
    const config = readConfig(undefined, { BERTH_SERVER__WORKERS: '2' })
    expect(findWorkerContradictions(config, 'darwin')).toHaveLength(1)
    expect(findWorkerContradictions({ ...config, workers: 1 }, 'darwin')).toEqual([])
  })
})
