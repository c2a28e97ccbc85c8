// The contestants. Each is a process of its own on a free port of the loopback interface.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBerth } from '../test/support/server/berth-process.ts'
import type { ConstantAnswer } from './servers/constant.ts'

export interface Contestant {
  readonly name: string
  readonly url: string
  /** The headers with the credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly pid: number
  /** The process of a server that the contestant uses. Its CPU time is counted for the contestant. */
  readonly helperPid?: number
  stop(): Promise<void>
}

export async function startBerthContestant(
  folder: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Contestant> {
  const dataDir = join(folder, 'berth')
  mkdirSync(dataDir)
  const berth = await startBerth({ dataDir, settings })
  return {
    name: 'berth',
    url: berth.url,
    headers: { Authorization: `Basic ${btoa(`apikey:${berth.apiKey}`)}` },
    pid: berth.pid,
    stop: async () => {
      await berth.stop()
    },
  }
}

/** Replaces Berth under its name, so that the same bars apply. */
export function startSlowRegistry(folder: string): Promise<Contestant> {
  const blobs = join(folder, 'slow-registry')
  mkdirSync(blobs)
  return startScript('berth', 'slow-registry', [blobs])
}

export async function startConstant(folder: string, name: string, answer: ConstantAnswer): Promise<Contestant> {
  const path = join(folder, 'constant.json')
  writeFileSync(path, JSON.stringify(answer))
  return startScript(name, 'constant', name.includes('static') ? [path, '--static'] : [path])
}

export function startBareFile(path: string): Promise<Contestant> {
  return startScript('bare Bun.file', 'bare-file', [path])
}

export function startBareUpload(path: string): Promise<Contestant> {
  return startScript('bare loop', 'bare-upload', [path])
}

export async function startScript(name: string, script: string, args: readonly string[]): Promise<Contestant> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'servers', `${script}.ts`), ...args], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const port = await readPort(child.stdout)
  // Its own error message is printed before this one, because both use the same standard error.
  if (port === undefined) throw new Error(`${script} ended before it was ready`)
  return { name, url: `http://127.0.0.1:${port}`, headers: {}, pid: child.pid, stop: () => stopChild(child) }
}

async function readPort(printed: ReadableStream<Uint8Array>): Promise<number | undefined> {
  let text = ''
  for await (const chunk of printed) {
    text += Buffer.from(chunk).toString()
    const port = /^\{"port":(\d+)\}/m.exec(text)?.[1]
    if (port !== undefined) return Number(port)
  }
  return undefined
}

export async function stopChild(child: Bun.Subprocess): Promise<void> {
  child.kill('SIGTERM')
  // A server that does not stop must not prevent the benchmark from ending.
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
  await child.exited
  clearTimeout(timer)
}

/** For servers that cannot choose a port themselves. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  const { port } = listener
  listener.stop(true)
  return port
}
