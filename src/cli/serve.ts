import type { Command } from 'commander'
import { readConfig } from '../app/config.ts'
import { type RunningServer, runServer } from '../app/run.ts'
import { configOption } from './stores.ts'

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the registry')
    .option(...configOption)
    .action(async (options: { config?: string }) => {
      const server = await runServer(readConfig(options.config))
      // Listening before anybody is told that we are here: who knows may stop us at once.
      const told = untilToldToStop()
      greet(server)
      await told
      await server.stop()
    })
}

function greet({ url, loginHost: host, firstApiKey, log }: RunningServer): void {
  log.write('info', 'ready', { url })
  log.flush()
  const lines = ['', `  Berth is ready at ${url}`, '']
  if (firstApiKey !== undefined) {
    lines.push(`  Your API key (shown only now; keep it):  ${firstApiKey}`, '')
    lines.push(`  docker login ${host} -u apikey -p ${firstApiKey}`, '')
  } else {
    lines.push(`  docker login ${host} -u apikey`, '')
  }
  // Standard output belongs to the log. Not by console.error, which paints a terminal red.
  process.stderr.write(`${lines.join('\n')}\n`)
}

/** A second signal this soon after the first is the same one: a terminal tells npm and us, and npm tells us too. */
const sameSignalMs = 1_000

/** The first signal asks to stop; one more, later, is from somebody who will not wait. */
function untilToldToStop(): Promise<void> {
  return new Promise((resolve) => {
    let toldAt: number | undefined
    const onSignal = (): void => {
      if (toldAt !== undefined && Date.now() - toldAt > sameSignalMs) process.exit(1)
      toldAt ??= Date.now()
      resolve()
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })
}
