import { runCli } from './cli/cli.ts'

// Files are readable only for the user of this process, because the metadata contains hashes of keys and passwords.
process.umask(0o077)

process.exit(await runCli(process.argv.slice(2)))
