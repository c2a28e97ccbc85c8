// The peer: Debian's docker-registry 2.8.2 with its fastest configuration.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { S3Server } from '../test/support/s3/s3-server.ts'
import type { Contestant } from './contestants.ts'
import { freePort, stopChild } from './contestants.ts'

const readyWithinMs = 10_000
const user = 'bench'
const password = 'bench'

export function findDockerRegistry(): string | undefined {
  return Bun.which('docker-registry') ?? undefined
}

export interface DockerRegistryOptions {
  readonly name: string
  readonly folder: string
  /** With bcrypt at its lowest cost. The registry checks the password for each request. */
  readonly withPassword: boolean
  /** Where it stores blobs, if not in the folder. */
  readonly s3?: S3Server
}

export async function startDockerRegistry(program: string, options: DockerRegistryOptions): Promise<Contestant> {
  const port = freePort()
  const configPath = join(options.folder, `${options.name.replaceAll(/\W+/g, '-')}.yml`)
  mkdirSync(join(options.folder, 'docker-registry'), { recursive: true })
  writeFileSync(configPath, await formatConfig(options, port))
  // Its S3 driver ends at once if the environment of the caller names certificates.
  const env = { PATH: process.env['PATH'] }
  const child = Bun.spawn([program, 'serve', configPath], { env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  const url = `http://127.0.0.1:${port}`
  const stop = () => stopChild(child)
  try {
    await waitUntilReady(url, () => child.exitCode)
  } catch (error) {
    await stop()
    throw error
  }
  return { name: options.name, url, headers: options.withPassword ? basicHeaders() : {}, pid: child.pid, stop }
}

/** No access log, blob descriptors in memory, no upload purging, no health checks: all in the peer's favour. */
async function formatConfig(options: DockerRegistryOptions, port: number): Promise<string> {
  const config = {
    version: 0.1,
    log: { level: 'error', accesslog: { disabled: true } },
    storage: {
      cache: { blobdescriptor: 'inmemory' },
      ...(options.s3 === undefined
        ? { filesystem: { rootdirectory: join(options.folder, 'docker-registry') } }
        : { s3: formatS3(options.s3), redirect: { disable: true } }),
      maintenance: { uploadpurging: { enabled: false } },
    },
    http: { addr: `127.0.0.1:${port}` },
    ...(options.withPassword && { auth: { htpasswd: { realm: 'bench', path: await writePasswords(options.folder) } } }),
  }
  return Bun.YAML.stringify(config, null, 2)
}

/** The store makes one copy instead of many copies of parts. S3 copies at most 5 GiB at once. */
function formatS3(s3: S3Server) {
  return {
    regionendpoint: s3.url,
    region: s3.region,
    bucket: s3.bucket,
    accesskey: s3.accessKey,
    secretkey: s3.secretKey,
    rootdirectory: '/docker-registry',
    secure: false,
    multipartcopythresholdsize: 5 * 2 ** 30,
  }
}

async function writePasswords(folder: string): Promise<string> {
  const path = join(folder, 'htpasswd')
  writeFileSync(path, `${user}:${await Bun.password.hash(password, { algorithm: 'bcrypt', cost: 4 })}\n`)
  return path
}

function basicHeaders() {
  return { Authorization: `Basic ${btoa(`${user}:${password}`)}` }
}

async function waitUntilReady(url: string, exitCode: () => number | null): Promise<void> {
  const deadline = performance.now() + readyWithinMs
  while (performance.now() < deadline) {
    if (exitCode() !== null) throw new Error(`docker-registry ended with ${exitCode()} before it was ready`)
    const status = await fetch(`${url}/v2/`).then(
      (answer) => answer.status,
      () => undefined,
    )
    if (status === 200 || status === 401) return
    await Bun.sleep(20)
  }
  throw new Error('docker-registry was not ready in time')
}
