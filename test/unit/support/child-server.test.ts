// Nothing is left behind, however the test's process ends.
import { describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, outlive } from '../../support/basics/child-server.ts'
import { until } from '../../support/clocks/until.ts'

const module = join(import.meta.dir, '../../support/basics/child-server.ts')

/** Starts a child under watch and waits to be killed. */
const program = `
  import { spawn } from 'node:child_process'
  import { outlive } from ${JSON.stringify(module)}
  const child = spawn('sleep', ['600'], { stdio: 'ignore' })
  if (process.argv[2] !== 'unwatched') outlive([child], process.argv[1])
  console.log(child.pid)
  setInterval(() => undefined, 1_000)
`

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // Where nobody buries the dead, they can still be counted.
  const { stdout } = Bun.spawnSync(['ps', '-o', 'stat=', '-p', String(pid)])
  return !stdout.toString().trim().startsWith('Z')
}

async function startAndKill(...words: string[]): Promise<{ child: number; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-child-'))
  const parent = Bun.spawn([process.execPath, '-e', program, folder, ...words], { stdout: 'pipe' })
  const { value = new Uint8Array() } = await parent.stdout.getReader().read()
  const child = Number(new TextDecoder().decode(value))
  expect(isAlive(child)).toBe(true)
  parent.kill('SIGKILL')
  await parent.exited
  return { child, folder }
}

describe('a server that is run as a child', () => {
  test('ends with its folder when the test lets go of it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-child-'))
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    const watch = outlive([child], folder)
    expect(isAlive(child.pid ?? 0)).toBe(true)
    await watch.end()
    expect([isAlive(child.pid ?? 0), existsSync(folder)]).toEqual([false, false])
  })

  test('ends with its folder when it does not listen to the first signal', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-child-'))
    const child = spawn('sh', ['-c', 'trap "" TERM; echo deaf; while :; do sleep 0.1; done'])
    await new Promise((resolve) => child.stdout?.once('data', resolve))
    await outlive([child], folder, 'KILL').end()
    expect([isAlive(child.pid ?? 0), existsSync(folder)]).toEqual([false, false])
  })

  test('ends with its folder when the test is killed', async () => {
    const { child, folder } = await startAndKill()
    await until('the child is gone', () => !isAlive(child))
    await until('its folder is gone', () => !existsSync(folder))
  })

  test('control: without the watch it stays', async () => {
    const { child, folder } = await startAndKill('unwatched')
    await Bun.sleep(300)
    expect([isAlive(child), existsSync(folder)]).toEqual([true, true])
    process.kill(child, 'SIGKILL')
    rmSync(folder, { recursive: true })
  })

  test('gets ports of which no two are the same', async () => {
    const ports = await freePorts(20)
    expect(new Set(ports).size).toBe(20)
    expect(ports.every((port) => port > 0)).toBe(true)
  })
})
