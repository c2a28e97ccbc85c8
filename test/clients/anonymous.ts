// A server with anonymous pull from `public/`, and what a client without credentials gets there.
import { expect } from 'bun:test'
import type { CommandResult } from '../support/basics/command.ts'
import { layoutSource, readContent, registrySource } from '../support/clients/image-content.ts'
import { type Image, OciLayout } from '../support/clients/oci-layout.ts'
import type { BerthProcess } from '../support/server/berth-process.ts'
import { pushFromLayout } from './registry-push.ts'
import type { Servers } from './servers.ts'

const open = { BERTH_AUTH__ANONYMOUS_PULL: 'public/*' }

/** A client that has no credentials for the server, and an image of its own. None of these throws. */
export interface AnonymousClient {
  /** Gives what the client has got, in a form that can be compared with `expected`. */
  pull(image: string): Promise<CommandResult>
  push(image: string): Promise<CommandResult>
}

/** `public/x` and `private/x` hold the image, pushed by their owner. */
export async function withOpenServer(
  servers: Servers,
  { folder, image }: { readonly folder: string; readonly image: Image },
  body: (berth: BerthProcess) => Promise<void>,
): Promise<void> {
  const layout = new OciLayout(folder)
  layout.addImage('1', image)
  await servers.withOther(open, async (berth) => {
    for (const repository of ['public/x', 'private/x']) {
      await pushFromLayout(layoutSource(folder), '1', berth, repository, '1')
    }
    await body(berth)
  })
}

/** Checks that an anonymous client cannot pull from a private repository, nor push to a public one. */
export async function expectRefused(anonymous: AnonymousClient, berth: BerthProcess, words: RegExp): Promise<void> {
  const pull = await anonymous.pull(`${berth.host}/private/x:1`)
  expect({ pulled: pull.code === 0, output: pull.output }).toEqual({
    pulled: false,
    output: expect.stringMatching(words),
  })
  const push = await anonymous.push(`${berth.host}/public/x:2`)
  expect({ pushed: push.code === 0, output: push.output }).toEqual({
    pushed: false,
    output: expect.stringMatching(words),
  })
  const pushed = readContent(registrySource(berth.url, berth.apiKey, 'public/x'), '2')
  await expect(pushed).rejects.toThrow('404')
}
