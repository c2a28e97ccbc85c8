// Run as a process of its own: streams `argv[3]` bytes into an S3 store at `argv[2]`, in `argv[4]` uploads at once, and prints
// by how much the peak of its memory has grown.
import { tmpdir } from 'node:os'
import { generatedChunks } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { openS3Store, s3StoreSettings } from '../support/s3/s3-store.ts'
import { emptyObject, freshKey } from '../support/stores/stored-objects.ts'

const [url = '', size = '0', uploads = '1'] = process.argv.slice(2)
const server = { url, region: 'eu-test-1', bucket: 'sink', accessKey: 'KEY', secretKey: 'secret', isPathStyle: true }
const store = openS3Store(s3StoreSettings(server, tmpdir()))
const before = peakMemoryBytes(process.pid)

async function upload(sizeBytes: number): Promise<void> {
  const writer = await store.openWriter(freshKey(), emptyObject)
  for (const chunk of generatedChunks(sizeBytes, 65_536)) await writer.write(chunk)
  await writer.complete()
  await writer.close()
}

await Promise.all(Array.from({ length: Number(uploads) }, () => upload(Number(size) / Number(uploads))))
await store.close()
console.log(JSON.stringify({ grownBytes: peakMemoryBytes(process.pid) - before }))
