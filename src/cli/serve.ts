import type { Command } from 'commander'
import { isStartedByNpm, readConfig } from '../app/config.ts'
import { type RunningServer, runServer } from '../app/run.ts'
import { configOption } from './stores.ts'

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('start the registry server')
    .option(...configOption)
    .action(async (options: { config?: string }) => {
      const server = await runServer(readConfig(options.config))
      // The signal handlers are installed before the ready line, because a process that reads it may stop the server at once.
      const stopped = waitForStopSignal()
      printReady(server, options.config)
      await stopped
      await server.stop()
    })
}

function printReady({ url, version, workers, loginHost, welcome, log }: RunningServer, file: string | undefined): void {
  log.write('info', 'ready', { url, version, workers })
  log.flush()
  const { firstApiKey, missingKey } = welcome
  const lines = ['', `  Berth ${version} is ready at ${url}`, '']
  if (firstApiKey !== undefined) {
    lines.push(`  Your API key (it is shown only once; keep it):  ${firstApiKey}`, '')
    lines.push(`  echo ${firstApiKey} | docker login ${loginHost} -u apikey --password-stdin`, '')
  } else {
    if (missingKey !== undefined) {
      const command = isStartedByNpm() ? 'npm run --silent berth --' : 'berth'
      const option = file === undefined ? '' : ` --config ${file}`
      lines.push('  No API key has been used yet. If you have none, create one with the settings of this server:', '')
      lines.push(`  ${command} key create ${missingKey.user} --name ${missingKey.keyName}${option}`, '')
    }
    lines.push(`  docker login ${loginHost} -u apikey`, '')
  }
  // Standard output is for the log. console.error would print in red on a terminal.
  process.stderr.write(`${lines.join('\n')}\n`)
}

/** A second signal within this time is a copy of the first: the terminal signals npm and Berth, and npm signals Berth too. */
const sameSignalMs = 1_000

/** The first signal stops the server gracefully. A later signal ends the process at once. */
function waitForStopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let signalledAt: number | undefined
    const onSignal = (): void => {
      if (signalledAt !== undefined && Date.now() - signalledAt > sameSignalMs) process.exit(1)
      signalledAt ??= Date.now()
      resolve()
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })
}
