// Real clients against a real server: each logs in, pushes, pulls, and what came back is compared to the last byte. All of it
// under both challenges.
import { afterAll, beforeAll, describe } from 'bun:test'
import { ClientMatrix } from './client-matrix.ts'
import { hookTimeoutMs } from './client-suite.ts'
import { containerdSuites } from './containerd.ts'
import { dockerSuite } from './docker.ts'
import { buildahSuite, podmanSuite } from './podman-and-buildah.ts'
import { challenges, Servers } from './servers.ts'
import { skopeoSuite } from './skopeo.ts'

const matrix = new ClientMatrix()

afterAll(() => {
  console.log(`\n${matrix}\n`)
})

describe.each(challenges)('asked by %s', (challenge) => {
  const servers = new Servers(challenge)
  beforeAll(() => servers.start(), hookTimeoutMs)
  afterAll(() => servers.stop(), hookTimeoutMs)

  dockerSuite(matrix, servers)
  containerdSuites(matrix, servers)
  podmanSuite(matrix, servers)
  buildahSuite(matrix, servers)
  skopeoSuite(matrix, servers)
})
