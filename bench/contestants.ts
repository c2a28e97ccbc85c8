// The contestants. Each is a process of its own on a free port of the loopback interface.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot, testApiKey } from '../test/support/basics/test-project.ts'
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

const readyWithinMs = 60_000
export const berthUser = 'apikey'
export const berthPassword = testApiKey

/** Berth with its defaults: it checks credentials, syncs each upload, and writes its access log to a file. */
export async function startBerthContestant(
  folder: string,
  settings: Readonly<Record<string, string>> = {},
  name = 'berth',
): Promise<Contestant> {
  const dataDir = join(folder, 'berth')
  mkdirSync(dataDir, { recursive: true })
  const logPath = join(folder, 'berth.log')
  // A server that ran here before has left its lines.
  writeFileSync(logPath, '')
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'serve'], {
    cwd: projectRoot,
    env: {
      // As `npm start`, the image and the systemd unit set it.
      UV_THREADPOOL_SIZE: '8',
      ...process.env,
      BERTH_DATA_DIR: dataDir,
      BERTH_SERVER__HOST: '127.0.0.1',
      BERTH_SERVER__PORT: '0',
      BERTH_LOG__FORMAT: 'json',
      BERTH_IDENTITY__ADMIN_API_KEY: berthPassword,
      ...settings,
    },
    stdin: 'ignore',
    stdout: Bun.file(logPath),
    stderr: Bun.file(join(folder, 'berth-messages.txt')),
  })
  const stop = () => stopChild(child)
  const headers = { Authorization: `Basic ${btoa(`${berthUser}:${berthPassword}`)}` }
  const url = await untilReady(name, child, () => {
    const log = readFileSync(logPath, { encoding: 'utf8' })
    return log.includes('"msg":"ready"') ? /"url":"(http:\/\/127\.0\.0\.1:\d+)"/.exec(log)?.[1] : undefined
  })
  return { name, url, headers, pid: child.pid, stop }
}

/** Starts a registry of another project, which is asked without credentials. */
export async function startProgram(name: string, command: readonly string[], port: number): Promise<Contestant> {
  // Some of their S3 drivers end at once if the environment of the caller names certificates.
  const env = { PATH: process.env['PATH'] }
  const child = Bun.spawn([...command], { env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  const url = await untilReady(name, child, async () => {
    const origin = `http://127.0.0.1:${port}`
    const answer = await fetch(`${origin}/v2/`).catch(() => undefined)
    return answer?.status === 200 ? origin : undefined
  })
  return { name, url, headers: {}, pid: child.pid, stop: () => stopChild(child) }
}

async function untilReady(
  name: string,
  child: Bun.Subprocess,
  findUrl: () => string | undefined | Promise<string | undefined>,
): Promise<string> {
  const deadline = performance.now() + readyWithinMs
  while (performance.now() < deadline && child.exitCode === null) {
    const url = await findUrl()
    if (url !== undefined) return url
    await Bun.sleep(20)
  }
  const { exitCode } = child
  await stopChild(child)
  throw new Error(exitCode === null ? `${name} was not ready in time` : `${name} ended with ${exitCode} at its start`)
}

/** Replaces Berth under its name, so that the same bars apply. */
export function startSlowRegistry(folder: string, name: string): Promise<Contestant> {
  const blobs = join(folder, 'slow-registry')
  mkdirSync(blobs)
  return startScript(name, 'slow-registry', [blobs])
}

export async function startConstant(folder: string, name: string, answer: ConstantAnswer): Promise<Contestant> {
  const path = join(folder, 'constant.json')
  writeFileSync(path, JSON.stringify(answer))
  return startScript(name, 'constant', [path])
}

export function startBareFile(name: string, path: string): Promise<Contestant> {
  return startScript(name, 'bare-file', [path])
}

export function startBareUpload(name: string, folder: string): Promise<Contestant> {
  return startScript(name, 'bare-upload', [folder])
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
