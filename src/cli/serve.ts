import type { Command } from 'commander'
import { isStartedByNpm, readConfig } from '../app/config.ts'
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
      greet(server, options.config)
      await told
      await server.stop()
    })
}

function greet({ url, version, loginHost, welcome, log }: RunningServer, file: string | undefined): void {
  log.write('info', 'ready', { url, version })
  log.flush()
  const { firstApiKey, missingKey } = welcome
  const lines = ['', `  Berth ${version} is ready at ${url}`, '']
  if (firstApiKey !== undefined) {
    lines.push(`  Your API key (it is shown only now; keep it):  ${firstApiKey}`, '')
    lines.push(`  echo ${firstApiKey} | docker login ${loginHost} -u apikey --password-stdin`, '')
  } else {
    if (missingKey !== undefined) {
      const command = isStartedByNpm() ? 'npm run --silent berth --' : 'berth'
      const option = file === undefined ? '' : ` --config ${file}`
      lines.push('  No API key has been used yet. If you have none, create one, with the settings of this server:', '')
      lines.push(`  ${command} key create ${missingKey.user} --name ${missingKey.keyName}${option}`, '')
    }
    lines.push(`  docker login ${loginHost} -u apikey`, '')
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
