// moto's S3: quick, and lenient (it does not look at signatures). A second opinion on everything else.
import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, outlive } from '../basics/child-server.ts'
import type { Need } from '../basics/needs.ts'
import { until } from '../clocks/until.ts'
import { createBucket, type S3Server } from './s3-server.ts'

const versionOf = "import moto, importlib.util as u; assert u.find_spec('flask'); print(moto.__version__)"

function findVersion(): string | undefined {
  if (Bun.which('python3') === null) return undefined
  const { success, stdout } = Bun.spawnSync(['python3', '-c', versionOf], { stdout: 'pipe', stderr: 'ignore' })
  return success ? stdout.toString().trim() : undefined
}

/** A look that costs a start of Python: to be asked where it is needed. */
export function canStartMoto(): Need {
  return { isMet: findVersion() !== undefined, reason: 'python3 has no moto: pip install "moto[server]"' }
}

export async function startMoto(): Promise<S3Server> {
  const version = findVersion()
  if (version === undefined) throw new Error(canStartMoto().reason)
  const folder = mkdtempSync(join(tmpdir(), 'berth-moto-'))
  const [port] = await freePorts(1)
  const child = spawn('python3', ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)], {
    cwd: folder,
    stdio: 'ignore',
  })
  const watch = outlive([child], folder)
  const server = {
    name: 'moto' as const,
    version,
    url: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    bucket: 'moto-bucket',
    accessKey: 'moto',
    secretKey: 'moto-secret',
    isPathStyle: true,
    stop: () => watch.end(),
  }
  await until('moto answers', () => createBucket(server))
  return server
}
