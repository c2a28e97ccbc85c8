// The modules that a server loads: those for S3 only where S3 is configured, those of AWS only where they fetch credentials.
import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { projectRoot } from '../../support/basics/test-project.ts'
import { until } from '../../support/clocks/until.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'

const newFolder = useTemporaryFolders('modules-for-s3')
const stub = startS3Stub()
afterAll(() => stub.stop())

/** Paths of the modules that a server has loaded when it is ready. */
async function modulesOf(settings: Readonly<Record<string, string>>): Promise<string[]> {
  const folder = newFolder()
  const [listPath, preload] = [join(folder, 'modules.json'), join(folder, 'preload.ts')]
  await Bun.write(
    preload,
    `setInterval(() => Bun.write(${JSON.stringify(listPath)}, JSON.stringify(Object.keys(require.cache))), 50)`,
  )
  const child = Bun.spawn([process.execPath, '--preload', preload, 'src/main.ts', 'serve'], {
    cwd: projectRoot,
    env: {
      ...process.env,
      BERTH_DATA_DIR: join(folder, 'data'),
      BERTH_SERVER__HOST: '127.0.0.1',
      BERTH_SERVER__PORT: '0',
      BERTH_LOG__FORMAT: 'json',
      ...settings,
    },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  let output = ''
  const reading = (async () => {
    for await (const bytes of child.stdout) output += new TextDecoder().decode(bytes)
  })()
  await until('the server is ready', () => output.includes('"msg":"ready"'))
  await Bun.file(listPath)
    .delete()
    .catch(() => undefined)
  const list = await until('the modules are listed', async () => {
    const text = await Bun.file(listPath)
      .text()
      .catch(() => '')
    return text.endsWith(']') ? text : undefined
  })
  child.kill()
  await Promise.all([child.exited, reading])
  const modules: string[] = JSON.parse(list)
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
  const modules = await modulesOf({
    BERTH_STORAGE__S3__BUCKET: stub.bucket,
    BERTH_STORAGE__S3__ENDPOINT: stub.url,
    BERTH_STORAGE__S3__REGION: stub.region,
    BERTH_STORAGE__S3__PATH_STYLE: 'true',
    BERTH_STORAGE__S3__ACCESS_KEY_ID: stub.accessKey,
    BERTH_STORAGE__S3__SECRET_ACCESS_KEY: stub.secretKey,
  })
  expect(modules).toContain('src/adapters/blobs-s3/s3-blob-store.ts')
  expect(modules.filter((path) => ofAws.test(path))).toEqual([])
})
