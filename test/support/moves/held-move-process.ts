// A move in a process of its own, which stands still at one point, says so, and can be killed there.

import { join } from 'node:path'
import { projectRoot } from '../basics/test-project.ts'
import { Gate } from '../clocks/gates.ts'
import type { Place } from './move-command.ts'
import type { Point } from './move-race.ts'
import { held, moveWith } from './move-race.ts'

type Settings = Readonly<Record<string, string>>

interface Order {
  readonly point: Point
  readonly from: Settings
  readonly to: Settings
}

/** Killed as soon as it stands there. */
export async function killMoveAt(point: Point, from: Place, to: Place): Promise<void> {
  const order: Order = { point, from: from.settings, to: to.settings }
  const child = Bun.spawn(
    [process.execPath, join(projectRoot, 'test/support/moves/held-move-process.ts'), JSON.stringify(order)],
    {
      cwd: projectRoot,
      stdout: 'pipe',
      stderr: 'inherit',
    },
  )
  try {
    let said = ''
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) {
      said += decoder.decode(chunk, { stream: true })
      if (said.includes('held')) break
    }
    if (!said.includes('held')) throw new Error(`never at the point: ${said}`)
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
}

function placeOf(settings: Settings): Place {
  return {
    settings,
    dataDir: settings['BERTH_DATA_DIR'] ?? '',
    look() {
      throw new Error('nobody looks from here')
    },
  }
}

async function standStill({ point, from, to }: Order): Promise<void> {
  const gate = new Gate()
  void gate.reached.then(() => process.stdout.write('held\n'))
  process.stdout.write(
    `${await moveWith(
      placeOf(from),
      placeOf(to),
      'all',
      held(point, gate, async () => undefined),
    )}\n`,
  )
}

if (import.meta.main) await standStill(JSON.parse(process.argv[2] ?? ''))
