// Real clients against a real server: each logs in, pushes, pulls, and what came back is compared to the last byte. All of it
// under both challenges.
import { afterAll, beforeAll, describe } from 'bun:test'
import { hookTimeoutMs } from './client-suite.ts'
import { containerdTests } from './containerd.ts'
import { dockerTests } from './docker.ts'
import { storageTests } from './podman-and-buildah.ts'
import { challenges, Servers } from './servers.ts'
import { skopeoTests } from './skopeo.ts'

describe.each(challenges)('asked by %s', (challenge) => {
  const servers = new Servers(challenge)
  beforeAll(() => servers.start(), hookTimeoutMs)
  afterAll(() => servers.stop(), hookTimeoutMs)

  dockerTests(servers)
  containerdTests(servers)
  storageTests('podman', servers)
  storageTests('buildah', servers)
  skopeoTests(servers)
})
