// Run as a process of its own: streams `argv[3]` bytes into a filesystem store and prints the peak of its memory.
import { FilesystemBlobStore } from '../../src/adapters/blobs-filesystem/filesystem-blob-store.ts'
import { generatedChunks } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { emptyObject, freshKey } from '../support/stores/stored-objects.ts'

const [folder = '', size = '0'] = process.argv.slice(2)
const store = await FilesystemBlobStore.open(folder)
const before = peakMemoryBytes(process.pid)
const writer = await store.openWriter(freshKey(), emptyObject)
for (const chunk of generatedChunks(Number(size), 65_536)) await writer.write(chunk)
await writer.complete()
await writer.close()
console.log(JSON.stringify({ grownBytes: peakMemoryBytes(process.pid) - before }))
