// docker-registry 2.8 of Debian, and its successor distribution 3, which reads the same configuration file.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { S3Server } from '../test/support/s3/s3-server.ts'
import { type Contestant, freePort, startProgram } from './contestants.ts'

export function findDockerRegistry(): string | undefined {
  return Bun.which('docker-registry') ?? undefined
}

export interface DockerRegistryOptions {
  readonly name: string
  readonly folder: string
  /** Where it stores blobs, if not in the folder. */
  readonly s3?: S3Server
}

export async function startDockerRegistry(program: string, options: DockerRegistryOptions): Promise<Contestant> {
  const port = freePort()
  const configPath = join(options.folder, 'docker-registry.yml')
  mkdirSync(join(options.folder, 'docker-registry'), { recursive: true })
  writeFileSync(configPath, Bun.YAML.stringify(createConfig(options, port), null, 2))
  return startProgram(options.name, [program, 'serve', configPath], port)
}

/** No access log, blob descriptors in memory, no upload purging, no health checks: all in the peer's favour. */
function createConfig(options: DockerRegistryOptions, port: number) {
  return {
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
  }
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
