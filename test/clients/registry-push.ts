// Pushes an image from a layout by plain HTTP, for tests of clients that can only pull.
import { type ImageSource, parseManifest } from '../support/clients/image-content.ts'
import { imageMediaTypes } from '../support/clients/oci-layout.ts'

export interface PushTarget {
  readonly url: string
  readonly apiKey: string
}

export async function pushFromLayout(
  source: ImageSource,
  reference: string,
  target: PushTarget,
  repository: string,
  tag: string,
): Promise<void> {
  const bytes = await source.readManifest(reference)
  const { mediaType = imageMediaTypes.manifest, manifests = [], config, layers = [] } = parseManifest(bytes)
  const send = async (method: string, path: string, body: Uint8Array | ArrayBuffer, type: string): Promise<void> => {
    const headers = { authorization: `Basic ${btoa(`apikey:${target.apiKey}`)}`, 'content-type': type }
    const answer = await fetch(`${target.url}/v2/${repository}/${path}`, {
      method,
      headers,
      body: new Uint8Array(body),
    })
    if (answer.status !== 201) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  }
  for (const { digest } of manifests) await pushFromLayout(source, digest, target, repository, digest)
  for (const { digest } of config === undefined ? layers : [config, ...layers]) {
    const blob = await Bun.readableStreamToArrayBuffer(await source.openBlob(digest))
    await send('POST', `blobs/uploads/?digest=${digest}`, blob, 'application/octet-stream')
  }
  await send('PUT', `manifests/${tag}`, bytes, mediaType)
}
