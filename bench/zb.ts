// zot's own benchmark, for Berth and zot.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Run, startEach } from './comparison.ts'
import { berthPassword, berthUser } from './contestants.ts'
import { applyCores } from './cores.ts'
import type { Line } from './figures.ts'
import { zotName } from './registries.ts'
import { spreadOf } from './rounds.ts'

const clients = 10
const prefix = 'zb'

export function isZbLine({ title }: Line): boolean {
  return title.startsWith(`${prefix}: `)
}

/** The first run reads files and memory for the first time, and is slower. */
const rounds = 3

type Values = Map<string, Map<string, number[]>>

/** The median of some runs of each server, in turn. The figures are requests per second. */
export async function measureWithZb(run: Run, program: string): Promise<Line[]> {
  applyCores(run.cores, 'shared', [])
  const lines: Values = new Map()
  for (let round = 1; round <= rounds; round++) await measureRound(run, program, `${prefix}-${round}`, lines)
  return [...lines].map(([title, values]) => ({
    title,
    figure: 'per second',
    values: new Map([...values].map(([name, taken]) => [name, spreadOf(taken).median])),
  }))
}

async function measureRound(run: Run, program: string, roundName: string, lines: Values): Promise<void> {
  await startEach(
    run,
    roundName,
    async ({ name, url, headers }) => {
      const folder = join(run.folder, roundName, `of-${name.replaceAll(/\W+/g, '-')}`)
      // It removes its folder for data at the end, and keeps its results in the current folder.
      const data = join(folder, 'data')
      mkdirSync(data, { recursive: true })
      const credentials = headers['Authorization'] === undefined ? [] : ['-A', `${berthUser}:${berthPassword}`]
      const numbers = ['-c', `${clients}`, '-n', `${run.plan.zbRequests}`]
      // It would also measure replication, which needs a second server.
      const tests = ['-t', '^(Push|Pull)']
      const child = Bun.spawn([program, ...numbers, ...credentials, ...tests, '-o', 'ci-cd', '-d', data, url], {
        cwd: folder,
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const [printed, complaint, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
      if (code !== 0) {
        // Its figures would count failed requests. The other rows of the run are still good.
        console.log(
          `\nzb ended with ${code} on ${name}, so its figures are left out:\n${errorsIn(printed + complaint)}`,
        )
        return
      }
      for (const each of readFigures(join(folder, 'ci-cd.json'))) {
        const title = `${prefix}: ${each.name}`
        const values = lines.get(title) ?? new Map<string, number[]>()
        lines.set(title, values.set(name, [...(values.get(name) ?? []), each.value]))
      }
    },
    ({ isBerth, name }) => isBerth || name === zotName,
  )
}

/** The names of the tests, their failed requests, and the messages, without the warnings of its HTTP client. */
function errorsIn(output: string): string {
  const lines = output.split('\n').filter((line) => /Test name|Failed requests:\s+[1-9]|rror|panic/.test(line))
  return lines.join('\n').slice(-4000)
}

interface ZbFigure {
  readonly name: string
  readonly value: number
}

function readFigures(path: string): ZbFigure[] {
  return JSON.parse(readFileSync(path, 'utf8'))
}
