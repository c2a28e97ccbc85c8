// Real clients against a real server: each logs in, pushes, pulls, and what came back is compared to the last byte.
import { afterAll, beforeAll } from 'bun:test'
import { type BerthProcess, startBerth } from '../support/berth-process.ts'
import { ClientMatrix } from './client-matrix.ts'
import { hookTimeoutMs } from './client-suite.ts'
import { containerdSuites } from './containerd.ts'
import { dockerSuite } from './docker.ts'
import { buildahSuite, podmanSuite } from './podman-and-buildah.ts'
import { skopeoSuite } from './skopeo.ts'

const matrix = new ClientMatrix()
let running: BerthProcess | undefined

function berth(): BerthProcess {
  if (running === undefined) throw new Error('Berth did not start')
  return running
}

beforeAll(async () => {
  running = await startBerth()
}, hookTimeoutMs)

afterAll(async () => {
  console.log(`\n${matrix}\n`)
  await running?.stop()
}, hookTimeoutMs)

dockerSuite(matrix, berth)
containerdSuites(matrix, berth)
podmanSuite(matrix, berth)
buildahSuite(matrix, berth)
skopeoSuite(matrix, berth)
