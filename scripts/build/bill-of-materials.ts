// The bill of materials (CycloneDX 1.6) of the built files: what the lockfile says about the packages in them.
import packageJson from '../../package.json' with { type: 'json' }
import { type LockedPackage, readLockfile } from './runtimes.ts'

interface Component {
  readonly type: 'library' | 'platform'
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly hashes?: readonly { readonly alg: 'SHA-512'; readonly content: string }[]
  readonly licenses?: readonly { readonly expression: string }[]
}

const prefix = 'node_modules/'

/**
 * It has neither a time nor a random serial number, so that the same sources give the same file. The programs of Bun
 * for all targets are in the lockfile as optional packages; only those that were built in are listed.
 */
export function describeMaterials(runtimes: readonly string[]): string {
  const packages = Object.entries(readLockfile())
    .filter(([path, each]) => path.startsWith(prefix) && isBuiltIn(path, each, runtimes))
    .map(([path, each]) => describe(path, each))
  const { name, version, license } = packageJson
  const bom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': `pkg:npm/${name}@${version}`,
        name,
        version,
        purl: `pkg:npm/${name}@${version}`,
        licenses: [{ expression: license }],
      },
    },
    components: packages,
  }
  return `${JSON.stringify(bom, undefined, 2)}\n`
}

function isBuiltIn(path: string, { dev, optional }: LockedPackage, runtimes: readonly string[]): boolean {
  if (dev) return false
  const name = nameOf(path)
  if (name.startsWith('@oven/')) return runtimes.some((runtime) => name === `@oven/${runtime}`)
  // The package `bun` only installs one of the programs.
  return !optional && name !== 'bun'
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf(prefix) + prefix.length)
}

function describe(path: string, { version, integrity, license }: LockedPackage): Component {
  const name = nameOf(path)
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const hash = integrity?.startsWith('sha512-') ? Buffer.from(integrity.slice(7), 'base64').toString('hex') : undefined
  return {
    type: name.startsWith('@oven/') ? 'platform' : 'library',
    'bom-ref': `${purl}#${path}`,
    name,
    version,
    purl,
    ...(hash !== undefined && { hashes: [{ alg: 'SHA-512', content: hash }] }),
    ...(license !== undefined && { licenses: [{ expression: license }] }),
  }
}
