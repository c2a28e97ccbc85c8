import { expect } from 'bun:test'
import { useRunning } from '../support/basics/running.ts'
import {
  checkContent,
  compareContent,
  layoutSource,
  parseManifest,
  readContent,
  registrySource,
  skopeoFolderSource,
} from '../support/clients/image-content.ts'
import { imageMediaTypes, makeImage } from '../support/clients/oci-layout.ts'
import { type AnonymousClient, expectRefused, withOpenServer } from './anonymous.ts'
import { describeClient, prove } from './client-suite.ts'
import { dockerTypes, writeDockerListFolder } from './docker-list-folder.ts'
import { logins, type Servers, wrongKey } from './servers.ts'
import { SkopeoRun } from './skopeo-run.ts'

const dockerManifest = 'application/vnd.docker.distribution.manifest.v2+json'

export function skopeoTests(servers: Servers): void {
  const { challenge, shared: berth } = servers
  describeClient({ client: 'skopeo', tools: ['skopeo', 'tar'], challenge, berth }, () => {
    const run = useRunning(async () => new SkopeoRun(berth))
    proveRefusals(run)
    proveLogins(run)
    proveCopies(run)
    proveMultiArch(run)
    proveDockerLists(run, servers)
    proveLists(run)
    proveSync(run)
    proveAnonymous(run, servers)
  })
}

function proveRefusals(run: SkopeoRun): void {
  prove('a wrong key is refused as unauthorized', async () => {
    const { code, output } = await login(run, 'apikey', wrongKey(), true)
    expect(code).not.toBe(0)
    expect(output).toContain('invalid username/password')
    const copy = ['copy', '--dest-tls-verify=false', '--dest-creds', `apikey:${wrongKey()}`]
    const refused = await run.attempt(...copy, run.local('single'), run.remote('skopeo/wrong-key:1'))
    expect(refused.code).not.toBe(0)
    expect(refused.output).toContain('unauthorized')
  })

  prove('a copy without any login is refused as unauthorized', async () => {
    const copy = ['copy', '--dest-tls-verify=false', run.local('single'), run.remote('skopeo/wrong-key:1')]
    const { code, output } = await run.attempt(...copy)
    expect(code).not.toBe(0)
    expect(output).toMatch(/unauthorized|authentication required/)
  })
}

function login({ workspace, berth }: SkopeoRun, user: string, secret: string, mayFail = false) {
  const argv = ['skopeo', 'login', '--tls-verify=false', '-u', user, '--password-stdin', berth().host]
  return workspace.run(argv, { input: secret, mayFail })
}

function proveLogins(run: SkopeoRun): void {
  for (const [user, secretOf, title] of logins) {
    prove(`logs in as ${title}, and may then push and pull`, async () => {
      await run.skopeo('logout', '--all')
      expect((await login(run, user, await secretOf(run.berth()))).output).toContain('Login Succeeded')
      const image = run.remote(`skopeo/${user}:1`)
      await run.skopeo('copy', '--dest-tls-verify=false', run.local('single'), image)
      expect((await readContent(run.pushed(`skopeo/${user}`), '1')).root).toBe(run.singleDigest)
      const back = run.workspace.path(`${user}-back`)
      await run.skopeo('copy', '--src-tls-verify=false', image, `oci:${back}:1`)
      compareContent(await readContent(run.source, 'single'), await readContent(layoutSource(back), '1'))
    })
  }
}

function proveAnonymous(run: SkopeoRun, servers: Servers): void {
  prove('an anonymous client pulls only public repositories, and pushes nothing', async () => {
    const copyTo = (name: string, back: string) => [
      'copy',
      '--src-tls-verify=false',
      `docker://${name}`,
      `oci:${back}:1`,
    ]
    const anonymous: AnonymousClient = {
      pull: (name) => run.attempt(...copyTo(name, run.workspace.path('private-back'))),
      push: (name) => run.attempt('copy', '--dest-tls-verify=false', run.local('single'), `docker://${name}`),
    }
    const place = { folder: run.workspace.path('open'), image: run.image }
    await withOpenServer(servers, place, async (berth) => {
      const back = run.workspace.path('public-back')
      await run.skopeo(...copyTo(`${berth.host}/public/x:1`, back))
      compareContent(await readContent(layoutSource(place.folder), '1'), await readContent(layoutSource(back), '1'))
      await expectRefused(anonymous, berth, /unauthorized|authentication required/)
    })
  })
}

function proveCopies(run: SkopeoRun): void {
  prove('an OCI image goes up and comes back byte for byte', async () => {
    const image = run.remote('skopeo/single:1')
    await run.skopeo('copy', '--dest-tls-verify=false', run.local('single'), image)
    const expected = await readContent(run.source, 'single')
    compareContent(expected, await readContent(run.pushed('skopeo/single'), '1'))
    const back = run.workspace.path('single-back')
    await run.skopeo('copy', '--src-tls-verify=false', image, `oci:${back}:1`)
    compareContent(expected, await readContent(layoutSource(back), '1'))
  })

  prove('a copy in the docker schema 2 format keeps config and layers', async () => {
    const image = run.remote('skopeo/schema2:1')
    await run.skopeo('copy', '--format', 'v2s2', '--dest-tls-verify=false', run.local('single'), image)
    const pushed = await readContent(run.pushed('skopeo/schema2'), '1')
    expect(pushed.parts.get(pushed.root)?.mediaType).toBe(dockerManifest)
    const blobs = (content: typeof pushed) => [...content.parts.keys()].filter((digest) => digest !== content.root)
    expect(blobs(pushed)).toEqual(blobs(await readContent(run.source, 'single')))
    const back = run.workspace.path('schema2-back')
    await run.skopeo('copy', '--src-tls-verify=false', image, `dir:${back}`)
    compareContent(pushed, await readContent(skopeoFolderSource(back), 'root'))
  })

  prove('a copy from one repository to another arrives whole, and again in the OCI format', async () => {
    const copy = ['copy', '--src-tls-verify=false', '--dest-tls-verify=false']
    await run.skopeo(...copy, run.remote('skopeo/single:1'), run.remote('skopeo/copied:1'))
    const expected = await readContent(run.source, 'single')
    compareContent(expected, await readContent(run.pushed('skopeo/copied'), '1'))
    await run.skopeo(...copy, '--format', 'oci', run.remote('skopeo/schema2:1'), run.remote('skopeo/copied:oci'))
    const converted = await readContent(run.pushed('skopeo/copied'), 'oci')
    checkContent(converted)
    const manifest = parseManifest(await run.pushed('skopeo/copied').readManifest('oci'))
    expect(manifest.mediaType ?? '').not.toBe(dockerManifest)
    expect(manifest.layers?.map((layer) => layer.digest)).toEqual(
      [...expected.parts].filter(([, part]) => part.kind === 'layer').map(([digest]) => digest),
    )
  })
}

function proveMultiArch(run: SkopeoRun): void {
  prove('an index over two platforms goes up and comes back byte for byte', async () => {
    const image = run.remote('skopeo/multi:1')
    await run.skopeo('copy', '--all', '--dest-tls-verify=false', run.local('multi'), image)
    const expected = await readContent(run.source, 'multi')
    expect(expected.root).toBe(run.indexDigest)
    compareContent(expected, await readContent(run.pushed('skopeo/multi'), '1'))
    const back = run.workspace.path('multi-back')
    await run.skopeo('copy', '--all', '--src-tls-verify=false', image, `oci:${back}:1`)
    compareContent(expected, await readContent(layoutSource(back), '1'))
  })

  prove('a copy for one platform takes that platform alone', async () => {
    const back = run.workspace.path('arm64-back')
    const image = run.remote('skopeo/multi:1')
    await run.skopeo('--override-arch', 'arm64', 'copy', '--src-tls-verify=false', image, `oci:${back}:1`)
    const index = parseManifest(await run.source.readManifest('multi'))
    const arm64 = index.manifests?.[1]?.digest ?? 'none'
    compareContent(await readContent(run.source, arm64), await readContent(layoutSource(back), '1'))
  })
}

function proveDockerLists(run: SkopeoRun, servers: Servers): void {
  const listFolder = (): string => {
    const folder = run.workspace.path(`list-${crypto.randomUUID()}`)
    writeDockerListFolder(folder, [makeImage(1), makeImage(1, 'arm64')])
    return folder
  }

  prove('a docker manifest list arrives as an OCI index, because lists are refused', async () => {
    const folder = listFolder()
    await run.skopeo('copy', '--all', '--dest-tls-verify=false', `dir:${folder}`, run.remote('skopeo/list:1'))
    const pushed = await readContent(run.pushed('skopeo/list'), '1')
    checkContent(pushed)
    expect(pushed.parts.get(pushed.root)?.mediaType).toBe(imageMediaTypes.index)
    const given = await readContent(skopeoFolderSource(folder), 'root')
    const blobs = (content: typeof pushed) =>
      [...content.parts.keys()].filter((d) => content.parts.get(d)?.kind === 'layer')
    expect(blobs(pushed)).toEqual(blobs(given))
  })

  prove('a docker manifest list goes up byte for byte, where the setting allows it', async () => {
    const folder = listFolder()
    await servers.withOther({ BERTH_MANIFESTS__ADDITIONAL_MEDIA_TYPES: dockerTypes.list }, async (berth) => {
      const image = `docker://${berth.host}/skopeo/list:1`
      const creds = `apikey:${berth.apiKey}`
      await run.skopeo('copy', '--all', '--dest-tls-verify=false', '--dest-creds', creds, `dir:${folder}`, image)
      const given = await readContent(skopeoFolderSource(folder), 'root')
      compareContent(given, await readContent(registrySource(berth.url, berth.apiKey, 'skopeo/list'), '1'))
      const back = run.workspace.path('list-back')
      await run.skopeo('copy', '--all', '--src-tls-verify=false', '--src-creds', creds, image, `dir:${back}`)
      compareContent(given, await readContent(skopeoFolderSource(back), 'root'))
    })
  })
}

function proveLists(run: SkopeoRun): void {
  prove('inspect and list-tags tell the digest, the layers and every tag', async () => {
    await run.skopeo('copy', '--dest-tls-verify=false', run.local('single'), run.remote('skopeo/single:2'))
    const inspected = JSON.parse(
      (await run.skopeo('inspect', '--tls-verify=false', run.remote('skopeo/single:2'))).stdout,
    )
    expect(inspected.Digest).toBe(run.singleDigest)
    expect(inspected.Layers).toHaveLength(3)
    const listed = JSON.parse((await run.skopeo('list-tags', '--tls-verify=false', run.remote('skopeo/single'))).stdout)
    expect(listed.Tags).toEqual(['1', '2'])
  })

  prove('a deleted image is gone by tag and by digest', async () => {
    const image = run.remote('skopeo/doomed:1')
    await run.skopeo('copy', '--dest-tls-verify=false', run.local('single'), image)
    await run.skopeo('delete', '--tls-verify=false', image)
    for (const reference of ['1', run.singleDigest]) {
      await expect(run.pushed('skopeo/doomed').readManifest(reference)).rejects.toThrow('404')
    }
    const again = await run.workspace.run(['skopeo', 'inspect', '--tls-verify=false', image], { mayFail: true })
    expect(again.code).not.toBe(0)
    compareContent(await readContent(run.source, 'single'), await readContent(run.pushed('skopeo/single'), '1'))
  })
}

function proveSync(run: SkopeoRun): void {
  prove('sync brings a whole repository to a folder and from there to another place', async () => {
    const { host } = run.berth()
    for (const tag of ['single', 'multi']) {
      await run.skopeo('copy', '--all', '--dest-tls-verify=false', run.local(tag), run.remote(`skopeo/synced:${tag}`))
    }
    const folder = run.workspace.path('sync')
    await run.skopeo(
      ...['sync', '--all', '--src', 'docker', '--dest', 'dir', '--src-tls-verify=false'],
      ...[`${host}/skopeo/synced`, folder],
    )
    await run.skopeo(
      ...['sync', '--all', '--src', 'dir', '--dest', 'docker', '--dest-tls-verify=false'],
      ...[folder, `${host}/mirror`],
    )
    for (const tag of ['single', 'multi']) {
      const expected = await readContent(run.source, tag)
      compareContent(expected, await readContent(skopeoFolderSource(`${folder}/synced:${tag}`), 'root'))
      compareContent(expected, await readContent(run.pushed('mirror/synced'), tag))
    }
  })
}
