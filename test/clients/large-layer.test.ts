// One layer of 2 GiB goes up and down through a real client, and the server's memory stays small.
import { describe, expect, test } from 'bun:test'
import { createCipheriv, createHash, randomBytes } from 'node:crypto'
import { closeSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { Workspace } from '../support/basics/command.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { compareContent, layoutSource, readContent } from '../support/clients/image-content.ts'
import { encodeConfig, imageMediaTypes, OciLayout } from '../support/clients/oci-layout.ts'
import { tarEnd, tarHeader, tarPadding } from '../support/clients/tar-file.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { hasTools } from './client-suite.ts'

const MiB = 1024 * 1024
const layerBytes = 2048 * MiB
/** Far below the layer, far above an idle server. */
const memoryLimitBytes = 512 * MiB

describe('a layer of 2 GiB', () => {
  if (!hasTools({ client: 'the large layer', tools: ['skopeo'] })) return
  test('goes up and comes back byte for byte, and the server needs little memory for it', async () => {
    const workspace = new Workspace('large')
    const berth = await startBerth()
    try {
      await sendAndFetch(workspace, berth)
    } finally {
      await berth.stop()
      workspace.remove()
    }
  }, 900_000)
})

async function sendAndFetch(workspace: Workspace, berth: BerthProcess): Promise<void> {
  const layout = new OciLayout(workspace.path('layout'))
  addLargeImage(layout)
  const expected = await readContent(layoutSource(layout.folder), 'large')
  const image = `docker://${berth.host}/large/image:1`
  const skopeo = async (...args: string[]): Promise<number> => {
    const startedAt = performance.now()
    await workspace.run(['skopeo', '--insecure-policy', 'copy', '--preserve-digests', ...args], { timeoutMs: 400_000 })
    return (performance.now() - startedAt) / 1_000
  }
  const idle = peakMemoryBytes(berth.pid)
  const creds = `apikey:${berth.apiKey}`
  const upSeconds = await skopeo('--dest-tls-verify=false', '--dest-creds', creds, `oci:${layout.folder}:large`, image)
  const afterUpload = peakMemoryBytes(berth.pid)
  rmSync(layout.folder, { recursive: true })
  const back = workspace.path('back')
  const downSeconds = await skopeo('--src-tls-verify=false', '--src-creds', creds, image, `oci:${back}:large`)
  const afterDownload = peakMemoryBytes(berth.pid)

  const inMiB = (bytes: number) => `${Math.round(bytes / MiB)} MiB`
  console.log(
    `2 GiB layer: up in ${upSeconds.toFixed(1)} s, down in ${downSeconds.toFixed(1)} s; the server's peak memory: ` +
      `${inMiB(idle)} idle, ${inMiB(afterUpload)} after the upload, ${inMiB(afterDownload)} after the download`,
  )
  compareContent(expected, await readContent(layoutSource(back), 'large'))
  expect(afterDownload).toBeLessThan(memoryLimitBytes)
}

/** An image whose only layer is a plain tar of noise, written piece by piece. */
function addLargeImage(layout: OciLayout): void {
  const path = layout.blobPath('sha256:unfinished')
  const file = openSync(path, 'w')
  const hash = createHash('sha256')
  let size = 0
  const write = (bytes: Uint8Array) => {
    hash.update(bytes)
    size += writeSync(file, bytes)
  }
  const contentBytes = layerBytes - tarEnd.length - 512
  write(tarHeader('noise', contentBytes))
  const noise = createCipheriv('aes-128-ctr', randomBytes(16), randomBytes(16))
  const zeros = new Uint8Array(MiB)
  for (let left = contentBytes; left > 0; left -= MiB) write(noise.update(zeros.subarray(0, Math.min(left, MiB))))
  write(tarPadding(contentBytes))
  write(tarEnd)
  closeSync(file)
  expect(size).toBe(layerBytes)

  const digest = `sha256:${hash.digest('hex')}`
  renameSync(path, layout.blobPath(digest))
  const config = encodeConfig({ os: 'linux', architecture: 'amd64' }, [{ diffId: digest }])
  const layer = { mediaType: imageMediaTypes.tarLayer, digest, size }
  layout.addTag('large', layout.addManifest(layout.addBlob(imageMediaTypes.config, config), [layer]))
}
