// The scripts that start Berth from a checkout, in a copy of them with an npm and a Bun that only record their calls.
import { beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'

const newFolder = useTemporaryFolders('checkout')
let root = ''
let fakeNpm = ''

/** Fails if another installation runs, as `npm ci` does when it empties `node_modules` under the other one. */
const npmText = `
const { appendFileSync, mkdirSync, rmSync, writeFileSync } = require('node:fs')
mkdirSync('npm-is-running')
appendFileSync('calls.log', process.argv.slice(2).join(' ') + '\\n')
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700)
mkdirSync('node_modules/bun/bin', { recursive: true })
writeFileSync('node_modules/bun/bin/bun.exe', '#!/bin/sh\\necho "$PWD | $BERTH_CALLER_FOLDER | $*"\\n', { mode: 0o755 })
rmSync('npm-is-running', { recursive: true })
`

beforeAll(() => {
  root = newFolder()
  cpSync(join(projectRoot, 'scripts'), join(root, 'scripts'), { recursive: true })
  writeFileSync(join(root, 'package-lock.json'), '{}')
  fakeNpm = join(newFolder(), 'npm.cjs')
  writeFileSync(fakeNpm, npmText)
  chmodSync(fakeNpm, 0o755)
})

async function run(script: string, args: readonly string[], cwd: string, environment: Record<string, string> = {}) {
  const env = { PATH: process.env['PATH'] ?? '', npm_execpath: fakeNpm, ...environment }
  const child = Bun.spawn(['node', join(root, 'scripts', script), ...args], {
    cwd,
    env,
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, stdout, stderr }
}

describe('the scripts of a checkout', () => {
  test('install the packages once, although several first starts run at the same time', async () => {
    const starts = await Promise.all(['a', 'b', 'c'].map((word) => run('berth.mjs', [word], root)))

    for (const { code, stderr } of starts) expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
    expect(readFileSync(join(root, 'calls.log'), 'utf8').trim().split('\n')).toHaveLength(1)
    expect(readdirSync(root).filter((name) => name.startsWith('.berth-installing'))).toEqual([])
  })

  test('install them after an installation that was killed', async () => {
    writeFileSync(join(root, 'package-lock.json'), '{"changed":1}')
    const { pid, exited } = Bun.spawn(['true'])
    await exited
    writeFileSync(join(root, '.berth-installing'), String(pid))

    const { code, stderr } = await run('berth.mjs', ['a'], root)

    expect([code, stderr]).toEqual([0, expect.stringContaining('Installing the packages')])
    expect(existsSync(join(root, '.berth-installing'))).toBe(false)
  })

  test('run in the checkout, and pass on in which folder the caller is', async () => {
    const caller = newFolder()
    const asNpm = { npm_package_json: join(root, 'package.json'), INIT_CWD: caller }

    const called = await run('berth.mjs', ['user', 'list'], caller)
    const started = await run('start.mjs', [], root, asNpm)
    const ofAnotherNpm = await run('berth.mjs', ['gc'], caller, { ...asNpm, npm_package_json: '/x', INIT_CWD: '/x' })

    expect(called.stdout).toBe(`${root} | ${caller} | src/main.ts user list\n`)
    expect(started.stdout).toBe(`${root} | ${caller} | src/main.ts serve\n`)
    expect(ofAnotherNpm.stdout).toBe(`${root} | ${caller} | src/main.ts gc\n`)
  })
})
