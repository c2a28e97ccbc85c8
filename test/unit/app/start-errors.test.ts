import { describe, expect, test } from 'bun:test'
import { describeDataFault, describeListenFault } from '../../../src/app/start-errors.ts'

const dataDir = '/nowhere/data'
const fault = (code: string, path?: string) => Object.assign(new Error(code), { code, ...(path && { path }) })

describe('an error about a path', () => {
  test.each([dataDir, '/nowhere', `${dataDir}/blobs/x`, `${dataDir}/..data`])('%s is about the data folder', (path) => {
    for (const code of ['EACCES', 'EPERM', 'EEXIST', 'ENOTDIR', 'EROFS', 'ENOSPC']) {
      expect(String(describeDataFault(fault(code, path), { dataDir }))).toContain(`${dataDir} (data_dir)`)
    }
  })

  test.each(['/nowhere/data2', '/run/postgresql/socket', undefined])('%s stays as it is', (path) => {
    for (const code of ['EACCES', 'EPERM', 'EEXIST', 'ENOTDIR', 'EROFS']) {
      const error = fault(code, path)
      expect(describeDataFault(error, { dataDir })).toBe(error)
    }
  })
})

test.each([
  ['::', '[::]:5000'],
  ['10.0.0.1', '10.0.0.1:5000'],
])('an error about the address %s names %s', (host, address) => {
  expect(String(describeListenFault(fault('EADDRINUSE'), { host, port: 5000 }))).toContain(
    `cannot listen on ${address}: another process`,
  )
})
