import type { Command } from 'commander'
import { workerCommand } from '../app/workers/calls.ts'
import { runWorker } from '../app/workers/worker.ts'

/** Not for operators: a server with several processes starts it, and sends it its settings. */
export function addWorkerCommand(program: Command): void {
  program.command(workerCommand, { hidden: true }).action(runWorker)
}
