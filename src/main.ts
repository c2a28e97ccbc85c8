import { runCli } from './cli/cli.ts'

// What this process makes is for its own user: key and password hashes stand in the metadata.
process.umask(0o077)

process.exit(await runCli(process.argv.slice(2)))
