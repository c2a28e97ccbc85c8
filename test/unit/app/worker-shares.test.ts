import { describe, expect, test } from 'bun:test'
import { ConfigError, readConfig } from '../../../src/app/config.ts'
import {
  findWorkerContradictions,
  shareOfSupervisor,
  shareOfWorker,
  withWorkerCount,
} from '../../../src/app/workers/shares.ts'
import { projectRoot } from '../../support/basics/test-project.ts'

const postgres = { BERTH_METADATA__URL: 'postgres://localhost/berth' }

const large = { platform: 'linux', cores: 16, memoryBytes: 16 * 1024 ** 3 }
const s3 = { BERTH_STORAGE__S3__BUCKET: 'b' }

describe('the number of workers', () => {
  test.each([
    ['8 on a large machine', 8, {}, {}],
    ['one for each core', 3, { cores: 3 }, {}],
    ['1 on two cores', 1, { cores: 2 }, {}],
    ['1 on another system', 1, { platform: 'darwin' }, {}],
    ['1 with 512 MiB of memory', 1, { memoryBytes: 512 * 1024 ** 2 }, {}],
    ['1 with less memory than the settings need', 1, { memoryBytes: 1024 ** 2 }, {}],
    ['7 with 1 GiB of memory', 7, { memoryBytes: 1024 ** 3 }, {}],
    ['4 if limits.memory allows no more', 4, {}, { BERTH_LIMITS__MEMORY: '128MiB' }],
    ['1 if manifests may need all of limits.memory', 1, {}, { BERTH_LIMITS__MANIFEST_BYTES: '64MiB' }],
    ['2 if metadata.connections allows no more', 2, {}, postgres],
    ['8 with more connections', 8, {}, { ...postgres, BERTH_METADATA__CONNECTIONS: '34' }],
    ['8 with S3', 8, {}, s3],
    ['2 with few buffers for S3', 2, {}, { ...s3, BERTH_STORAGE__S3__BUFFERS: '8' }],
    ['what the operator sets', 5, { cores: 1, memoryBytes: 0 }, { BERTH_SERVER__WORKERS: '5' }],
  ])('is %s', (_name, workers, machine, variables) => {
    const config = readConfig(undefined, { BERTH_SERVER__WORKERS: 'auto', ...variables })
    expect(withWorkerCount(config, { ...large, ...machine }).workers).toBe(workers)
  })

  test('counts only the cores that this process may use', () => {
    const script = `
      import { readConfig } from './src/app/config.ts'
      import { withWorkerCount } from './src/app/workers/shares.ts'
      console.log(withWorkerCount(readConfig(undefined, { BERTH_SERVER__WORKERS: 'auto' })).workers)`
    const { stdout } = Bun.spawnSync(['taskset', '--cpu-list', '0', process.execPath, '-e', script], {
      cwd: projectRoot,
    })
    expect(stdout.toString().trim()).toBe('1')
  })
})

describe('limits of a server', () => {
  test.each([2, 3, 4])('are divided among %i workers and never exceeded', (workers) => {
    const variables = { ...postgres, BERTH_SERVER__WORKERS: String(workers), BERTH_SERVER__CONNECTIONS_MAX: '1000' }
    const config = withWorkerCount(readConfig(undefined, variables))
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
