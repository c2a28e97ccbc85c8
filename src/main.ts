import { runCli } from './cli/cli.ts'

process.exit(await runCli(process.argv.slice(2)))
