// The rules of the house, run against the code. Each names the files at fault; and each is shown a planted violation
// first, because a rule that cannot fail proves nothing.
import { describe, expect, test } from 'bun:test'
import {
  findCircles,
  findForbiddenImports,
  findForbiddenKitImports,
  findHomelessFiles,
  findImportsOfMissingFiles,
  findStrayModules,
  findUiImports,
  findUnusedPackages,
  parseImportTable,
} from './support/house/house-imports.ts'
import { functionLinesMax, importTable, linesMax, runtimePackages } from './support/house/house-table.ts'
import {
  findDefaultExports,
  findLongFiles,
  findLongFunctions,
  findMessageDecisions,
  findPromises,
  findQuietSkips,
  findRunningPorts,
  findStrayClocks,
  findStrayGlobals,
  findStraySql,
  findVagueNames,
} from './support/house/house-texts.ts'
import { readProjectFile, readSources, type SourceText } from './support/house/source-text.ts'

const src = readSources('src')
const ui = readSources('ui')
const tests = readSources('test')
const all = [...src, ...ui, ...tests, ...readSources('bench', 'scripts')]

function file(path: string, text = ''): SourceText {
  return { path, text }
}

interface Rule {
  readonly sentence: string
  readonly find: (sources: readonly SourceText[]) => string[]
  readonly scope: readonly SourceText[]
  /** A violation, and words that its report must hold. */
  readonly planted: readonly (readonly [readonly SourceText[], readonly string[]])[]
}

const later = 'TO' + 'DO'
const long = `${'x\n'.repeat(linesMax)}x\n`
const longFunction = `export function f(): void {\n${'  x()\n'.repeat(functionLinesMax + 1)}}\n`

const rules: readonly Rule[] = [
  {
    sentence: 'each layer imports only the layers that the table gives it',
    find: findForbiddenImports,
    scope: src,
    planted: [
      [[file('src/registry/blobs.ts', "import { f } from '../app/build.ts'")], ['registry/blobs.ts', 'app/build.ts']],
      [[file('src/http/a.ts', "import p from '../../package.json'")], ['http/a.ts', 'package.json']],
      [[file('src/oci/names.ts', "import { f } from '../lib/log.ts'")], ['oci/names.ts', 'lib/log.ts']],
      [[file('src/lib/log.ts', "import type { D } from '../oci/digest.ts'")], ['lib/log.ts', 'oci/digest.ts']],
      [[file('src/cli/gc.ts', "import { f } from '../http/server.ts'")], ['cli/gc.ts', 'http/server.ts']],
      [[file('src/http/a.ts', "export { f } from '../adapters/b/c.ts'")], ['http/a.ts', 'adapters/b/c.ts']],
      [[file('src/http/a.ts', "const b = await import('../app/run.ts')")], ['http/a.ts', 'app/run.ts']],
      [[file('src/http/a.ts', "import '../../test/support/b.ts'")], ['http/a.ts', 'test/support/b.ts']],
      [[file('src/app/run.ts', "import {\n  a,\n  b,\n} from '../../bench/bars.ts'")], ['app/run.ts', 'bench/bars.ts']],
      [[file('src/adapters/a/b.ts', "import { f } from '../c/d.ts'")], ['adapters/a/b.ts', 'adapters/c/d.ts']],
      [[file('src/main.ts', "import { f } from './app/run.ts'")], ['src/main.ts', 'app/run.ts']],
    ],
  },
  {
    sentence: 'every file of src is in a layer',
    find: findHomelessFiles,
    scope: src,
    planted: [[[file('src/attic/box.ts')], ['src/attic/box.ts']]],
  },
  {
    sentence: 'the user interface imports nothing of src',
    find: findUiImports,
    scope: ui,
    planted: [[[file('ui/src/a.ts', "import { f } from '../../src/oci/b.ts'")], ['ui/src/a.ts', 'src/oci/b.ts']]],
  },
  {
    sentence: 'what is imported is there',
    find: findImportsOfMissingFiles,
    scope: [...src, ...ui],
    planted: [[[file('src/oci/a.ts', "import { f } from './b.ts'")], ['src/oci/a.ts', 'src/oci/b.ts']]],
  },
  {
    sentence: 'the kits of test/support import each other in one direction',
    find: findForbiddenKitImports,
    scope: tests,
    planted: [
      [[file('test/support/attic.ts')], ['test/support/attic.ts is in no kit']],
      [[file('test/support/basics/a.ts', "import { b } from '../server/b.ts'")], ['basics/a.ts', 'server/b.ts']],
      [[file('test/support/server/a.ts', "import { b } from '../../api/b.ts'")], ['server/a.ts', 'api/b.ts']],
    ],
  },
  {
    sentence: 'no files import one another in a circle',
    find: findCircles,
    scope: [...src, ...readSources('bench'), ...tests.filter(({ path }) => path.startsWith('test/support/'))],
    planted: [
      [
        [
          file('src/oci/a.ts', "import { b } from './b.ts'"),
          file('src/oci/b.ts', "import { c } from './c.ts'"),
          file('src/oci/c.ts', "import type { A } from './a.ts'"),
        ],
        ['circle: src/oci/a.ts -> src/oci/b.ts -> src/oci/c.ts -> src/oci/a.ts'],
      ],
    ],
  },
  {
    sentence: 'packages and builtin modules are imported where they live, and nowhere else',
    find: findStrayModules,
    scope: src,
    planted: [
      [[file('src/http/a.ts', "import { SignJWT } from 'jose'")], ['src/http/a.ts', 'jose', 'src/lib/jwt.ts']],
      [[file('src/registry/a.ts', "import { open } from 'node:fs/promises'")], ['src/registry/a.ts', 'node:fs']],
      [[file('src/app/a.ts', "import { Database } from 'bun:sqlite'")], ['src/app/a.ts', 'sqlite-connection.ts']],
      [[file('src/cli/a.ts', "import { x } from 'left-pad/inner'")], ['src/cli/a.ts', 'no home']],
      [[file('src/http/a.ts', "import { createServer } from 'node:https'")], ['src/http/a.ts', 'no home']],
    ],
  },
  {
    sentence: 'engines, environment and processes are used where they live, and nowhere else',
    find: findStrayGlobals,
    scope: src,
    planted: [
      [[file('src/http/a.ts', 'const { HOME } = process.env')], ['src/http/a.ts:1', 'src/app/config.ts']],
      [[file('src/registry/a.ts', 'await Bun.file(path).text()')], ['src/registry/a.ts:1', 'Bun.file']],
      [[file('src/app/a.ts', '\nBun.serve({})')], ['src/app/a.ts:2', 'src/http/server.ts']],
      [[file('src/registry/a.ts', 'new Bun.SQL(url)')], ['src/registry/a.ts:1', 'postgres-session.ts']],
    ],
  },
  {
    sentence: 'the domain types, the ports and the use cases have no clock and no random numbers of their own',
    find: findStrayClocks,
    scope: src,
    planted: [
      [[file('src/registry/a.ts', 'const now = Date.now()')], ['src/registry/a.ts:1', 'Date.now']],
      [[file('src/identity/a.ts', 'const now = new Date()')], ['src/identity/a.ts:1']],
    ],
  },
  {
    sentence: 'nothing in the ports runs',
    find: findRunningPorts,
    scope: src,
    planted: [
      [[file('src/ports/a.ts', 'export const limit = 5')], ['src/ports/a.ts holds code that runs']],
      [[file('src/ports/a.ts', "import { D } from '../b.ts'\nexport type E = D")], ['src/ports/a.ts:1', 'type import']],
    ],
  },
  {
    sentence: 'code decides by the class or a typed field of an error, not by its message',
    find: findMessageDecisions,
    scope: src,
    planted: [[[file('src/a.ts', "/x/.test(e.message)\ne.message === 'x'")], ['src/a.ts:1', 'src/a.ts:2']]],
  },
  {
    sentence: 'SQL stands in adapters/metadata-sql alone',
    find: findStraySql,
    scope: src,
    planted: [
      [[file('src/registry/a.ts', "db.all('SELECT id FROM blobs')")], ['src/registry/a.ts:1', 'SELECT id FROM']],
      [[file('src/app/a.ts', 'db.run(`\n  delete from tags`)')], ['src/app/a.ts:2', 'delete from']],
    ],
  },
  {
    sentence: `no file is longer than ${linesMax} lines`,
    find: findLongFiles,
    scope: all,
    planted: [[[file('bench/a.ts', long)], ['bench/a.ts has 301 lines']]],
  },
  {
    sentence: `no function of src is longer than ${functionLinesMax} lines`,
    find: findLongFunctions,
    scope: src,
    planted: [
      [[file('src/http/a.ts', longFunction)], ['src/http/a.ts:1', '61 lines']],
      [[file('src/http/a.ts', longFunction.replace('export function f(): void', 'const f = () =>'))], ['61 lines']],
    ],
  },
  {
    sentence: 'no file or folder has a name that says nothing',
    find: findVagueNames,
    scope: all,
    planted: ['index', 'utils', 'string-helpers', 'common', 'types', 'upload-manager', 'tag-service'].map(
      (name) => [[file(`src/oci/${name}.ts`)], [`src/oci/${name}.ts`]] as const,
    ),
  },
  {
    sentence: 'nothing is exported as default',
    find: findDefaultExports,
    scope: all,
    planted: [[[file('ui/src/a.ts', 'export default 5')], ['ui/src/a.ts:1']]],
  },
  {
    sentence: 'no comment promises later work',
    find: findPromises,
    scope: all,
    planted: [[[file('scripts/a.mjs', `// ${later}: finish`)], ['scripts/a.mjs:1']]],
  },
  {
    sentence: 'no test is left out in silence, and none alone is run',
    find: findQuietSkips,
    scope: tests,
    planted: ['skip', 'only', 'skipIf', 'todo'].map(
      (word) => [[file('test/unit/a.test.ts', `test.${word}('x', f)`)], ['test/unit/a.test.ts:1']] as const,
    ),
  },
]

describe('the house', () => {
  for (const { sentence, find, scope, planted } of rules) {
    test(sentence, () => {
      expect(find(scope)).toEqual([])
    })

    test(`a violation is reported: ${sentence}`, () => {
      for (const [sources, words] of planted) {
        const found = find(sources)
        for (const word of words) expect(found.join('\n')).toContain(word)
        expect(found.length).toBeLessThanOrEqual(2)
      }
    })
  }

  test('the rules had something to look at', () => {
    expect(src.length).toBeGreaterThan(80)
    expect(tests.length).toBeGreaterThan(20)
  })

  test('words in comments and strings break no rule', () => {
    const innocent = file(
      'src/registry/a.ts',
      [
        "// import { f } from '../app/build.ts'; process.env; export default",
        "const a = 'Bun.serve, test.only( and Date.now()' // it's fine",
        'const b = /["\'`]process.env/.test(a) ? `$' + "{c('}')} export default` : a / 2",
      ].join('\n'),
    )
    const found = rules.flatMap(({ find }) => find([innocent]))
    expect(found).toEqual([])
  })
})

describe('the packages', () => {
  type Lists = Readonly<Record<'dependencies' | 'devDependencies', Readonly<Record<string, string>>>>
  const { dependencies, devDependencies }: Lists = JSON.parse(readProjectFile('package.json') ?? '{}')

  test('every package that is brought along is imported', () => {
    const imported = Object.keys(dependencies).filter((name) => !runtimePackages.includes(name))
    expect(findUnusedPackages([...src, ...ui], imported)).toEqual([])
    expect(findUnusedPackages(src, ['left-pad'])).toEqual(['package.json needs left-pad, which nothing imports'])
  })

  test('every version is exact', () => {
    for (const version of Object.values({ ...dependencies, ...devDependencies })) expect(version).toMatch(/^\d[\w.-]*$/)
  })
})

describe('what others watch over', () => {
  test('Biome refuses long functions, default exports and enums in src', () => {
    const { linter, overrides = [] } = JSON.parse(readProjectFile('biome.json') ?? '{}')
    const { complexity, style } = linter.rules
    expect(complexity.noExcessiveLinesPerFunction.level).toBe('error')
    expect(complexity.noExcessiveLinesPerFunction.options.maxLines).toBeLessThanOrEqual(functionLinesMax)
    expect(style.noDefaultExport).toBe('error')
    expect(style.noEnum).toBe('error')
    const relaxed = overrides.flatMap(({ includes }: { includes: string[] }) => includes)
    expect(relaxed.filter((pattern: string) => !/^(?:test|bench|ui|scripts)\//.test(pattern))).toEqual([])
  })

  test('ARCHITECTURE.md draws the same import table', () => {
    const drawn = parseImportTable(readProjectFile('ARCHITECTURE.md') ?? '')
    const sorted = (table: Iterable<readonly [string, readonly string[]]>) =>
      [...table].map(([layer, may]) => `${layer}: ${may.toSorted().join(', ')}`).toSorted()
    expect(sorted(drawn)).toEqual(sorted(Object.entries(importTable)))
  })

  test('an import table in Markdown is read as it is drawn', () => {
    const page = [
      '# Map',
      '',
      '| Folder | Contents | May import |',
      '|---|---|---|',
      '| `src/lib` | a toolbox for http | (nothing) |',
      '| `src/http` | transport | registry, `oci` |',
      '',
      'end',
    ].join('\n')
    expect([...parseImportTable(page)]).toEqual([
      ['lib', []],
      ['http', ['registry', 'oci']],
    ])
  })
})
