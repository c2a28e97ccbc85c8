// The rules of the layout, checked against the code. Each rule must also report planted violations, because a rule that
// cannot fail proves nothing. Biome checks default exports, enums and the length of functions.
import { describe, expect, test } from 'bun:test'
import * as house from './support/house/house-rules.ts'
import { functionLinesMax, importTable, linesMax, runtimePackages } from './support/house/house-table.ts'
import { readProjectFile, readSources, type SourceText } from './support/house/source-text.ts'

const src = readSources('src')
const tests = readSources('test')
const others = readSources('bench', 'scripts')
const all = [...src, ...tests, ...others]

/** The files with their texts, and words that the report must contain. */
type Planted = readonly [files: Readonly<Record<string, string>>, ...words: string[]]

interface Rule {
  readonly find: house.Find
  readonly scope: readonly SourceText[]
  readonly planted: readonly Planted[]
}

const rules: Readonly<Record<string, Rule>> = {
  'each layer imports only the layers that the table gives it': {
    find: house.findForbiddenImports,
    scope: src,
    planted: [
      [{ 'src/registry/blobs.ts': "import { f } from '../app/build.ts'" }, 'registry/blobs.ts', 'app/build.ts'],
      [{ 'src/http/a.ts': "import p from '../../package.json'" }, 'http/a.ts', 'package.json'],
      [{ 'src/oci/names.ts': "import { f } from '../lib/log.ts'" }, 'oci/names.ts', 'lib/log.ts'],
      [{ 'src/lib/log.ts': "import type { D } from '../oci/digest.ts'" }, 'lib/log.ts', 'oci/digest.ts'],
      [{ 'src/http/a.ts': "export { f } from '../adapters/b/c.ts'" }, 'http/a.ts', 'adapters/b/c.ts'],
      [{ 'src/http/a.ts': "const b = await import('../app/run.ts')" }, 'http/a.ts', 'app/run.ts'],
      [{ 'src/http/a.ts': "import '../../test/support/b.ts'" }, 'http/a.ts', 'test/support/b.ts'],
      [{ 'src/app/run.ts': "import {\n  a,\n  b,\n} from '../../bench/bars.ts'" }, 'app/run.ts', 'bench/bars.ts'],
      [{ 'src/adapters/a/b.ts': "import { f } from '../c/d.ts'" }, 'adapters/a/b.ts', 'adapters/c/d.ts'],
      [{ 'src/main.ts': "import { f } from './app/run.ts'" }, 'src/main.ts', 'app/run.ts'],
    ],
  },
  'every file of src is in a layer': {
    find: house.findFilesOutsideLayers,
    scope: src,
    planted: [[{ 'src/attic/box.ts': '' }, 'src/attic/box.ts']],
  },
  'the kits of test/support import each other in one direction': {
    find: house.findForbiddenKitImports,
    scope: tests,
    planted: [
      [{ 'test/support/attic.ts': '' }, 'test/support/attic.ts is in no kit'],
      [{ 'test/support/basics/a.ts': "import { b } from '../server/b.ts'" }, 'basics/a.ts', 'server/b.ts'],
      [{ 'test/support/server/a.ts': "import { b } from '../../api/b.ts'" }, 'server/a.ts', 'api/b.ts'],
    ],
  },
  'no files import one another in a cycle': {
    find: house.findCycles,
    scope: [...src, ...others, ...tests.filter(({ path }) => path.startsWith('test/support/'))],
    planted: [
      [
        {
          'src/oci/a.ts': "import { b } from './b.ts'",
          'src/oci/b.ts': "import { c } from './c.ts'",
          'src/oci/c.ts': "import type { A } from './a.ts'",
        },
        'cycle: src/oci/a.ts -> src/oci/b.ts -> src/oci/c.ts -> src/oci/a.ts',
      ],
    ],
  },
  'packages and built-in modules are imported only where the table allows it': {
    find: house.findMisplacedModules,
    scope: src,
    planted: [
      [{ 'src/http/a.ts': "import { SignJWT } from 'jose'" }, 'src/http/a.ts', 'jose', 'src/lib/jwt.ts'],
      [{ 'src/registry/a.ts': "import { open } from 'node:fs/promises'" }, 'src/registry/a.ts', 'node:fs'],
      [{ 'src/cli/a.ts': "import { x } from 'left-pad/inner'" }, 'src/cli/a.ts', 'not in the house table'],
      [{ 'src/http/a.ts': "import { createServer } from 'node:https'" }, 'src/http/a.ts', 'not in the house table'],
    ],
  },
  'engines, environment and processes are used only where the table allows it': {
    find: house.findMisplacedGlobals,
    scope: src,
    planted: [
      [{ 'src/http/a.ts': 'const { HOME } = process.env' }, 'src/http/a.ts:1', 'src/app/config.ts'],
      [{ 'src/app/a.ts': '\nBun.serve({})' }, 'src/app/a.ts:2', 'src/http/server.ts'],
    ],
  },
  'the domain types, the ports and the use cases have no clock and no random numbers of their own': {
    find: house.findClocks,
    scope: src,
    planted: [
      [{ 'src/registry/a.ts': 'const now = Date.now()' }, 'src/registry/a.ts:1', 'Date.now'],
      [{ 'src/identity/a.ts': 'const now = new Date()' }, 'src/identity/a.ts:1'],
    ],
  },
  'ports have no code that runs': {
    find: house.findRunningPorts,
    scope: src,
    planted: [
      [{ 'src/ports/a.ts': 'export const limit = 5' }, 'src/ports/a.ts has code that runs'],
      [{ 'src/ports/a.ts': "import { D } from '../oci/d.ts'\nexport type E = D" }, 'src/ports/a.ts:1', 'type import'],
    ],
  },
  'code decides by the class or a typed field of an error, not by its message': {
    find: house.findMessageDecisions,
    scope: src,
    planted: [[{ 'src/a.ts': "/x/.test(e.message)\ne.message === 'x'" }, 'src/a.ts:1', 'src/a.ts:2']],
  },
  'only adapters/metadata-sql contains SQL': {
    find: house.findMisplacedSql,
    scope: src,
    planted: [
      [{ 'src/registry/a.ts': "db.all('SELECT id FROM blobs')" }, 'src/registry/a.ts:1', 'SELECT id FROM'],
      [{ 'src/app/a.ts': 'db.run(`\n  delete from tags`)' }, 'src/app/a.ts:2', 'delete from'],
    ],
  },
  [`no file is longer than ${linesMax} lines`]: {
    find: house.findLongFiles,
    scope: all,
    planted: [[{ 'bench/a.ts': 'x\n'.repeat(linesMax + 1) }, 'bench/a.ts has 301 lines']],
  },
  'no file or folder has a name that says nothing': {
    find: house.findVagueNames,
    scope: all,
    planted: ['index', 'utils', 'string-helpers', 'common', 'types', 'upload-manager', 'tag-service'].map(
      (name) => [{ [`src/oci/${name}.ts`]: '' }, `src/oci/${name}.ts`] as const,
    ),
  },
  'no comment promises later work': {
    find: house.findPromisesOfWork,
    scope: all,
    planted: [[{ 'scripts/a.mjs': `// ${'TO' + 'DO'}: finish` }, 'scripts/a.mjs:1']],
  },
  'no test is skipped silently, and no test runs alone': {
    find: house.findQuietSkips,
    scope: tests,
    planted: ['skip', 'only', 'skipIf', 'todo'].map(
      (word) => [{ 'test/unit/a.test.ts': `test.${word}('x', f)` }, 'test/unit/a.test.ts:1'] as const,
    ),
  },
}

for (const [sentence, { find, scope, planted }] of Object.entries(rules)) {
  test(sentence, () => {
    expect(find(scope)).toEqual([])
  })

  test(`a violation is reported: ${sentence}`, () => {
    for (const [files, ...words] of planted) {
      const found = find(Object.entries(files).map(([path, text]) => ({ path, text })))
      for (const word of words) expect(found.join('\n')).toContain(word)
      expect(found.length).toBeLessThanOrEqual(2)
    }
  })
}

test('the rules have files to check', () => {
  expect(src.length).toBeGreaterThan(80)
  expect(tests.length).toBeGreaterThan(20)
})

test('words in comments and strings break no rule', () => {
  const text = [
    "// import { f } from '../app/build.ts'; process.env",
    "const a = 'Bun.serve, test.only( and Date.now()' // it's fine",
    'const b = /["\'`]process.env/.test(a) ? `$' + "{c('}')} process.env` : a / 2",
  ].join('\n')
  expect(Object.values(rules).flatMap(({ find }) => find([{ path: 'src/registry/a.ts', text }]))).toEqual([])
})

describe('package.json', () => {
  const { dependencies, devDependencies } = JSON.parse(readProjectFile('package.json') ?? '')

  test('every dependency is imported', () => {
    const names = Object.keys(dependencies).filter((name) => !runtimePackages.includes(name))
    expect(house.findUnusedPackages(src, names)).toEqual([])
    expect(house.findUnusedPackages(src, ['left-pad'])).toEqual(['nothing imports left-pad'])
  })

  test('every version is exact', () => {
    for (const version of Object.values({ ...dependencies, ...devDependencies })) expect(version).toMatch(/^\d[\w.-]*$/)
  })
})

test('Biome rejects long functions, default exports and enums in src', () => {
  const { linter, overrides = [] } = JSON.parse(readProjectFile('biome.json') ?? '{}')
  const { complexity, style } = linter.rules
  expect(complexity.noExcessiveLinesPerFunction.level).toBe('error')
  expect(complexity.noExcessiveLinesPerFunction.options.maxLines).toBeLessThanOrEqual(functionLinesMax)
  expect([style.noDefaultExport, style.noEnum]).toEqual(['error', 'error'])
  const relaxed = overrides.flatMap(({ includes }: { includes: string[] }) => includes)
  expect(relaxed.filter((pattern: string) => !/^(?:test|bench|scripts)\//.test(pattern))).toEqual([])
})

test('ARCHITECTURE.md shows the same import table', () => {
  const rows = (readProjectFile('ARCHITECTURE.md') ?? '').matchAll(/^\| `src\/(\w+)(?:\.ts)?` \|.*\| ([^|]+) \|$/gm)
  const shown = [...rows].map(([, layer, may = '']) => [layer, may === '(nothing)' ? [] : may.split(', ').toSorted()])
  const wanted = Object.entries(importTable).map(([layer, may]) => [layer, may.toSorted()])
  expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(wanted))
})
