// Reads from memory. An async function on their path would answer correctly, and cost each of them a tenth more.
import { expect, test } from 'bun:test'
import { buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import { Pipeline } from '../../../src/http/pipeline.ts'
import { openLog } from '../../../src/lib/log.ts'
import { digestOf } from '../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { adminSettings } from '../../support/basics/test-project.ts'
import { authorization, manifestOfBlobs } from '../../support/clients/registry-client.ts'

const temporaryFolder = useTemporaryFolders('small-reads')
const blob = new TextEncoder().encode('{}')
const manifest = manifestOfBlobs(blob, [])

test('a read is answered without a promise if its caller, its rows and its bytes are in memory', async () => {
  const built = await buildApplication(readConfig(undefined, { BERTH_DATA_DIR: temporaryFolder(), ...adminSettings }))
  const pipeline = new Pipeline(built.app, openLog({ format: 'json', level: 'silent' }))
  const handle = (method: string, path: string, body?: Uint8Array<ArrayBuffer>) => {
    const headers = { authorization, 'content-type': 'application/vnd.oci.image.manifest.v1+json' }
    return pipeline.handle(new Request(`http://localhost/v2/a/b/${path}`, { method, headers, body: body ?? null }))
  }
  try {
    expect((await handle('POST', `blobs/uploads/?digest=${digestOf(blob)}`, blob)).status).toBe(201)
    expect((await handle('PUT', 'manifests/v1', new Uint8Array(manifest))).status).toBe(201)

    for (const path of ['manifests/v1', `manifests/${digestOf(manifest)}`, `blobs/${digestOf(blob)}`]) {
      for (const method of ['GET', 'HEAD']) {
        expect((await handle(method, path)).status).toBe(200)
        expect(handle(method, path), `${method} ${path}`).toBeInstanceOf(Response)
      }
    }
  } finally {
    await built.close()
  }
})
