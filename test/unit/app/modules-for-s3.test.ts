// The modules that a server loads: those for S3 only where S3 is configured, those of AWS only where they fetch credentials.
import { afterAll, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { projectRoot } from '../../support/basics/test-project.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'
import { s3Variables } from '../../support/stores/test-stores.ts'

const newFolder = useTemporaryFolders('modules-for-s3')
const stub = startS3Stub()
afterAll(() => stub.stop())

/** Paths of the modules that a process has loaded when its server is ready. */
async function modulesOf(settings: Readonly<Record<string, string>>): Promise<string[]> {
  const program = `
    import './src/cli/cli.ts'
    import { readConfig } from './src/app/config.ts'
    import { runServer } from './src/app/run.ts'
    const server = await runServer(readConfig(undefined))
    console.log(JSON.stringify(Object.keys(require.cache)))
    await server.stop()
    process.exit(0)`
  const own = { BERTH_DATA_DIR: newFolder(), BERTH_SERVER__PORT: '0', BERTH_LOG__LEVEL: 'silent' }
  const child = Bun.spawn([process.execPath, '-e', program], {
    cwd: projectRoot,
    env: { PATH: process.env['PATH'] ?? '', ...own, ...settings },
  })
  const modules: string[] = JSON.parse(await child.stdout.text())
  return modules.map((path) => path.replace(`${projectRoot}/`, ''))
}

const forS3 = /^src\/adapters\/blobs-s3\//
const ofAws = /@aws-sdk|@smithy/

test('a server with its blobs on disk loads neither the adapter for S3 nor packages of AWS', async () => {
  const modules = await modulesOf({})
  expect(modules).toContain('src/adapters/blobs-filesystem/filesystem-blob-store.ts')
  expect(modules.filter((path) => forS3.test(path) || ofAws.test(path))).toEqual([])
})

test('a server with a fixed key for S3 loads the adapter, and no packages of AWS', async () => {
  const modules = await modulesOf(s3Variables(stub, ''))
  expect(modules).toContain('src/adapters/blobs-s3/s3-blob-store.ts')
  expect(modules.filter((path) => ofAws.test(path))).toEqual([])
})
