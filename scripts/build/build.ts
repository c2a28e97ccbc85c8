// `npm run build`: makes one file for each target, with Berth, its packages and Bun in it, and beside them a bill of materials and the
// checksums. The same checkout gives the same bytes, on every machine and in every folder.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { describeMaterials } from './bill-of-materials.ts'
import { ensureRuntime, root, run, type Target, targets } from './runtimes.ts'

const names = targets.map(({ name }) => name)
const { values } = parseArgs({
  options: { target: { type: 'string', multiple: true }, output: { type: 'string' } },
})
const chosen = targets.filter(({ name }) => values.target === undefined || values.target.includes(name))
const unknown = values.target?.find((name) => !names.includes(name))
if (unknown !== undefined) {
  console.error(`There is no target ${unknown}. The targets are ${names.join(', ')}.`)
  process.exit(2)
}

const output = values.output ?? join(root, 'dist')
mkdirSync(output, { recursive: true })
for (const target of targets) rmSync(join(output, fileNameOf(target)), { force: true })
const built = [await writeMaterials()]
for (const target of chosen) built.push(await build(target))
writeFileSync(join(output, 'SHA256SUMS'), built.sort().map(checksumLine).join(''))
console.log(`built in ${output}: ${built.map((path) => basename(path)).join(', ')}, SHA256SUMS`)

function fileNameOf({ name }: Target): string {
  return `berth-${name}`
}

async function build(target: Target): Promise<string> {
  const path = join(output, fileNameOf(target))
  const runtime = await ensureRuntime(target)
  await run([
    process.execPath,
    'build',
    'src/main.ts',
    '--compile',
    `--target=${target.runtime}`,
    `--compile-executable-path=${runtime}`,
    // The server reads its own settings only, and no files of the folder in which it is started.
    '--no-compile-autoload-dotenv',
    '--no-compile-autoload-bunfig',
    '--sourcemap=inline',
    // Removes comments, which contain the paths of the packages.
    '--minify-whitespace',
    `--outfile=${path}`,
  ])
  return path
}

async function writeMaterials(): Promise<string> {
  const path = join(output, 'berth.cdx.json')
  writeFileSync(path, describeMaterials(chosen.map(({ runtime }) => runtime)))
  return path
}

function checksumLine(path: string): string {
  return `${createHash('sha256').update(readFileSync(path)).digest('hex')}  ${basename(path)}\n`
}
