// `npm test`: install what is missing, then format and lint, types, and every test that needs no server of others.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { bunPath, ensureInstalled, root } from './install.mjs'

ensureInstalled({ dev: true })

const bun = bunPath()
const suites = [
  'house.test.ts',
  'docs',
  'deploy',
  'unit',
  'contract',
  'api',
  'conformance',
  'bad-input',
  'fuzz',
  'faults',
  'replicas',
]
const checks = [
  [
    'format and lint (biome)',
    [join('node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings', '.'],
  ],
  ['types (tsc)', [join('node_modules', 'typescript', 'bin', 'tsc'), '--noEmit']],
]
const tests = ['tests (bun test)', ['test', '--timeout', '60000', ...suites.map((name) => `./test/${name}`)]]

const filters = process.argv.slice(2)
const only = filters[0] === '--checks-only'
const steps = only
  ? checks
  : filters.length > 0
    ? [['tests (bun test)', ['test', '--timeout', '60000', ...filters]]]
    : [...checks, tests]

let failed = 0
for (const [name, args] of steps) {
  console.error(`\n--- ${name}`)
  const run = spawnSync(bun, args, { cwd: root, stdio: 'inherit', env: { ...process.env, NODE_ENV: 'test' } })
  if (run.status !== 0) {
    failed += 1
    console.error(`--- ${name}: FAILED`)
  }
}
process.exit(failed === 0 ? 0 : 1)
