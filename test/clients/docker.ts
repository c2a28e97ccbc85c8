import { expect } from 'bun:test'
import { useRunning } from '../support/basics/running.ts'
import { checkContent, layoutSource, readContent, readUnpacked } from '../support/clients/image-content.ts'
import { makeImage, makeLayer, OciLayout } from '../support/clients/oci-layout.ts'
import { type AnonymousClient, expectRefused, withOpenServer } from './anonymous.ts'
import { describeClient, prove } from './client-suite.ts'
import { unpackedImage } from './docker-archive.ts'
import { dockerTypes } from './docker-list-folder.ts'
import { DockerRun } from './docker-run.ts'
import { pushFromLayout } from './registry-push.ts'
import { logins, type Servers, wrongKey } from './servers.ts'

export function dockerTests(servers: Servers): void {
  const { challenge, shared: berth } = servers
  const tools = ['docker', 'dockerd', 'containerd', 'runc', 'tar']
  describeClient({ client: 'docker engine', tools, challenge, berth }, () => {
    const run = useRunning(() => DockerRun.start(berth))
    proveRefusals(run, servers)
    proveLogins(run)
    provePushes(run, servers)
    provePulls(run)
    proveMultiArch(run, servers)
    proveAnonymous(run, servers)
  })
}

function proveRefusals(run: DockerRun, { challenge }: Servers): void {
  prove('a wrong key is refused as unauthorized', async () => {
    const { code, output } = await run.tryLogin('apikey', wrongKey())
    expect(code).not.toBe(0)
    expect(output).toMatch(/unauthorized/i)
  })

  prove('a push without any login is refused', async () => {
    const image = run.remote('docker/wrong-key:1')
    await run.load(image)
    expect(await run.refused('push', image)).toMatch(refusalWords[challenge])
  })

  prove('a push or pull with a wrong key is told at once that it is unauthorized, and why', async () => {
    const image = run.remote('docker/wrong-key:1')
    await run.load(image)
    const wrong = { auths: { [run.berth().host]: { auth: btoa(`apikey:${wrongKey()}`) } } }
    const folder = run.workspace.makeFolder('wrong-config')
    await Bun.write(`${folder}/config.json`, JSON.stringify(wrong))
    expect(await run.refused('--config', folder, 'pull', image)).toMatch(/unauthorized: .+/)
    expectRefusedAtOnce(await run.refused('--config', folder, 'push', image), /unauthorized: .+/)
  })
}

/** The error of docker without credentials: its own text, or that of the token endpoint. */
const refusalWords = {
  basic: /no basic auth credentials/,
  bearer: /unauthorized: authentication required/,
} as const

function proveLogins(run: DockerRun): void {
  for (const [user, secretOf, title] of logins) {
    prove(`logs in as ${title}, and may then push and pull`, async () => {
      await run.docker('logout', run.berth().host)
      await run.login(user, await secretOf(run.berth()))
      const image = run.remote(`docker/${user}:1`)
      await run.load(image)
      await run.docker('push', image)
      expect(await readUnpacked(run.pushed(`docker/${user}`), '1')).toEqual(unpackedImage(run.image))
      await run.forgetImages()
      await run.docker('pull', image)
      expect(await run.saved(image)).toEqual(unpackedImage(run.image))
    })
  }
}

/** Docker tries a push again for 50 seconds, and hides our message, when it does not understand the refusal. */
function expectRefusedAtOnce(output: string, reason: RegExp): void {
  const attempts = output.split('\n').filter((line) => line.includes('Retrying')).length
  expect({ attempts, lastLine: output.trim().split('\n').at(-1) }).toEqual({
    attempts: 0,
    lastLine: expect.stringMatching(reason),
  })
}

function provePushes(run: DockerRun, servers: Servers): void {
  prove('a loaded image goes up with the same config and layers, and a second push finds them there', async () => {
    const image = run.remote('docker/loaded:1')
    await run.load(image)
    const first = await run.docker('push', image)
    const pushed = await readContent(run.pushed('docker/loaded'), '1')
    checkContent(pushed)
    expect(first.output).toContain(`digest: ${pushed.root}`)
    expect(await readUnpacked(run.pushed('docker/loaded'), '1')).toEqual(unpackedImage(run.image))
    const second = await run.docker('push', image)
    expect(second.output.match(/Layer already exists/g)).toHaveLength(3)
    expect(second.output).toContain(`digest: ${pushed.root}`)
  })

  prove('a push to another repository mounts the layers that are known', async () => {
    const image = run.remote('docker/mounted:1')
    await run.docker('tag', run.remote('docker/loaded:1'), image)
    const { output } = await run.docker('push', image)
    expect(output.match(/Mounted from/g)).toHaveLength(3)
    checkContent(await readContent(run.pushed('docker/mounted'), '1'))
  })

  prove('a push without the right to push is told at once that it is denied, and why', async () => {
    await servers.withOther({ BERTH_IDENTITY__ROLES: 'admin=pull' }, async (berth) => {
      const reader = run.at(berth)
      await reader.login('apikey', berth.apiKey)
      const image = reader.remote('docker/denied:1')
      await reader.load(image)
      expectRefusedAtOnce(await reader.refused('push', image), /denied: .+/)
    })
  })

  prove('an imported tar goes up and comes back byte for byte', async () => {
    const layer = makeLayer('imported')
    const archive = run.workspace.path('import.tar')
    await Bun.write(archive, layer.tar)
    const image = run.remote('docker/imported:1')
    await run.docker('import', archive, image)
    const before = await run.saved(image)
    await run.docker('push', image)
    await run.forgetImages()
    await run.docker('pull', image)
    expect(await run.saved(image)).toEqual({ config: before.config, diffIds: [layer.diffId] })
  })
}

function provePulls(run: DockerRun): void {
  prove('an image comes back by its tag with every byte', async () => {
    await run.forgetImages()
    const image = run.remote('docker/loaded:1')
    const { root } = await readContent(run.pushed('docker/loaded'), '1')
    expect((await run.docker('pull', image)).output).toContain(`Digest: ${root}`)
    expect(await run.saved(image)).toEqual(unpackedImage(run.image))
  })

  prove('an image comes back by its digest with every byte', async () => {
    await run.forgetImages()
    const { root } = await readContent(run.pushed('docker/loaded'), '1')
    const image = run.remote(`docker/loaded@${root}`)
    await run.docker('pull', image)
    expect(await run.saved(image)).toEqual(unpackedImage(run.image))
  })

  prove('an unknown tag is told as not found', async () => {
    const output = await run.refused('pull', run.remote('docker/loaded:never'))
    expect(output).toMatch(/not found: .+|manifest unknown: .+/)
  })
}

function proveMultiArch(run: DockerRun, servers: Servers): void {
  prove('the image of the wanted platform comes out of an index', async () => {
    const images = [makeImage(2), makeImage(2, 'arm64')]
    const layout = new OciLayout(run.workspace.path('layout'))
    layout.addIndex('multi', images)
    await pushFromLayout(layoutSource(layout.folder), 'multi', run.berth(), 'docker/multi', '1')
    for (const wanted of images) {
      await run.forgetImages()
      const image = run.remote('docker/multi:1')
      await run.docker('pull', '--platform', `linux/${wanted.platform.architecture}`, image)
      expect(await run.saved(image)).toEqual(unpackedImage(wanted))
    }
  })

  prove('docker manifest puts a manifest list together, where the setting allows it', async () => {
    await servers.withOther({ BERTH_MANIFESTS__ADDITIONAL_MEDIA_TYPES: dockerTypes.list }, async (berth) => {
      const own = run.at(berth)
      await own.login('apikey', berth.apiKey)
      const images = [makeImage(1), makeImage(1, 'arm64')]
      const names = images.map((image) => own.remote(`docker/list:${image.platform.architecture}`))
      for (const [index, image] of images.entries()) {
        await own.load(names[index] ?? '', image)
        await own.docker('push', names[index] ?? '')
      }
      const list = own.remote('docker/list:all')
      await own.docker('manifest', 'create', '--insecure', list, ...names)
      await own.docker('manifest', 'push', '--insecure', list)
      const pushed = await readContent(own.pushed('docker/list'), 'all')
      checkContent(pushed)
      expect(pushed.parts.get(pushed.root)?.mediaType).toBe(dockerTypes.list)
      for (const image of images) {
        await own.forgetImages()
        await own.docker('pull', '--platform', `linux/${image.platform.architecture}`, list)
        expect(await own.saved(list)).toEqual(unpackedImage(image))
      }
    })
  })
}

function proveAnonymous(run: DockerRun, servers: Servers): void {
  const { challenge } = servers
  const anonymousClientOf = (own: DockerRun): AnonymousClient => ({
    pull: (image) => own.workspace.run(own.argv('pull', image), { mayFail: true }),
    async push(image) {
      await own.load(image)
      return own.workspace.run(own.argv('push', image), { mayFail: true })
    },
  })
  const sentence =
    challenge === 'bearer'
      ? 'an anonymous client pulls only public repositories, and pushes nothing'
      : 'an anonymous client gets nothing, even what is public, because docker does not ask without credentials'
  prove(sentence, async () => {
    const place = { folder: run.workspace.path('open'), image: run.image }
    await withOpenServer(servers, place, async (berth) => {
      const anonymous = anonymousClientOf(run.at(berth))
      const image = `${berth.host}/public/x:1`
      await run.forgetImages()
      const pull = await anonymous.pull(image)
      if (challenge === 'bearer') expect(await run.saved(image)).toEqual(unpackedImage(run.image))
      else expect(pull.output).toMatch(refusalWords.basic)
      // With a token that is not enough: docker adds that a login may help.
      const words = challenge === 'bearer' ? /denied: requested access to the resource is denied/ : refusalWords.basic
      await expectRefused(anonymous, berth, words)
    })
  })
}
