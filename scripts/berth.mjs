// `npm run berth -- <command>`: installs the packages that a server needs, then runs a command.
import './node-version.mjs'
import { ensureInstalled } from './install.mjs'
import { runBun } from './run-bun.mjs'

ensureInstalled({ dev: false })
runBun(['src/main.ts', ...process.argv.slice(2)]).then((code) => process.exit(code))
