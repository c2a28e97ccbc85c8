import { Workspace } from '../support/basics/command.ts'
import { layoutSource, registrySource } from '../support/clients/image-content.ts'
import { makeImage, OciLayout } from '../support/clients/oci-layout.ts'
import type { BerthOf } from './servers.ts'

/** One workspace with a single image and an index over two platforms in a layout. */
export class SkopeoRun {
  readonly berth: BerthOf
  readonly workspace = new Workspace('skopeo')
  readonly layout = new OciLayout(this.workspace.path('layout'))
  readonly source = layoutSource(this.layout.folder)
  readonly image = makeImage(3)
  readonly singleDigest = this.layout.addImage('single', this.image)
  readonly indexDigest = this.layout.addIndex('multi', [makeImage(2), makeImage(2, 'arm64')])

  constructor(berth: BerthOf) {
    this.berth = berth
  }

  async stop(): Promise<void> {
    this.workspace.remove()
  }

  skopeo(...args: string[]) {
    return this.workspace.run(['skopeo', '--insecure-policy', ...args])
  }

  /** May fail; the answer says whether and why. */
  attempt(...args: string[]) {
    return this.workspace.run(['skopeo', '--insecure-policy', ...args], { mayFail: true })
  }

  local(tag: string): string {
    return `oci:${this.layout.folder}:${tag}`
  }

  remote(image: string): string {
    return `docker://${this.berth().host}/${image}`
  }

  pushed(repository: string) {
    return registrySource(this.berth().url, this.berth().apiKey, repository)
  }
}
