// Berth as an operator runs it: a process of its own, on a free port, with a data folder of its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { adminSettings, projectRoot, testAdminPassword, testApiKey } from '../basics/test-project.ts'
import { storeSettings } from '../stores/test-stores.ts'
import { workerSettings } from './workers.ts'

export interface BerthOptions {
  /** Settings as environment variables, such as `BERTH_MANIFESTS__MISSING_CONTENT`. */
  readonly settings?: Readonly<Record<string, string>>
  /** A folder to keep; without it a fresh one is made and removed again by `stop`. */
  readonly dataDir?: string
  /** What runs instead of the sources, such as a built file. */
  readonly program?: readonly string[]
  /** Default: 20 seconds. */
  readonly readyWithinMs?: number
  /** The descriptor limit of the process, soft and hard. */
  readonly descriptorsMax?: number
}

export interface BerthProcess {
  /** `http://127.0.0.1:<port>`, without a slash at the end. */
  readonly url: string
  /** `127.0.0.1:<port>`, as clients want it before an image's name. */
  readonly host: string
  readonly apiKey: string
  readonly adminPassword: string
  readonly pid: number
  readonly dataDir: string
  /** All that the process has printed so far. */
  output(): string
  /** SIGTERM, wait, clean up; gives the exit code. */
  stop(): Promise<number>
  /** SIGKILL: a crash. The data folder stays. */
  kill(): Promise<void>
}

const usualReadyWithinMs = 20_000

/** Starts a server and waits until it says that it is ready. */
export async function startBerth(options: BerthOptions = {}): Promise<BerthProcess> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'berth-test-'))
  // A folder that is kept keeps its own stores.
  const stores = options.dataDir === undefined ? await storeSettings(dataDir) : {}
  const { descriptorsMax } = options
  const limited = descriptorsMax === undefined ? [] : ['sh', '-c', `ulimit -n ${descriptorsMax} && exec "$@"`, 'sh']
  const program = options.program ?? [process.execPath, 'src/main.ts']
  const child = Bun.spawn([...limited, ...program, 'serve'], {
    cwd: projectRoot,
    env: {
      ...process.env,
      BERTH_DATA_DIR: dataDir,
      BERTH_SERVER__HOST: '127.0.0.1',
      BERTH_SERVER__PORT: '0',
      ...adminSettings,
      BERTH_LOG__FORMAT: 'json',
      ...workerSettings(),
      ...stores,
      ...options.settings,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let printed = ''
  const decoder = new TextDecoder()
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) printed += decoder.decode(chunk, { stream: true })
  }
  void collect(child.stdout)
  void collect(child.stderr)

  const url = await waitForAddress(
    () => printed,
    () => child.exitCode,
    options.readyWithinMs ?? usualReadyWithinMs,
  ).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw error
  })
  const removeData = () => {
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true })
  }
  return {
    url,
    host: url.slice('http://'.length),
    apiKey: options.settings?.['BERTH_IDENTITY__ADMIN_API_KEY'] ?? testApiKey,
    adminPassword: testAdminPassword,
    pid: child.pid,
    dataDir,
    output: () => printed,
    async stop() {
      child.kill('SIGTERM')
      const code = await child.exited
      removeData()
      return code
    },
    async kill() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** The log line `{"msg":"ready","url":"http://127.0.0.1:41234", ...}` carries the port that was really taken. */
async function waitForAddress(printed: () => string, exitCode: () => number | null, withinMs: number): Promise<string> {
  const deadline = Date.now() + withinMs
  while (Date.now() < deadline) {
    const found = /"url":"(http:\/\/127\.0\.0\.1:\d+)"/.exec(printed())
    if (found?.[1] !== undefined && printed().includes('"msg":"ready"')) return found[1]
    if (exitCode() !== null) throw new Error(`Berth ended with ${exitCode()} before it was ready:\n${printed()}`)
    await Bun.sleep(10)
  }
  throw new Error(`Berth was not ready in time:\n${printed()}`)
}
