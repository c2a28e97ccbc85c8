// `npm run berth -- <command>`: installs the packages that a server needs, then runs a command.
import './node-version.mjs'
import { ensureInstalled } from './install.mjs'
import { runBerth } from './run-bun.mjs'

ensureInstalled({ dev: false })
runBerth(process.argv.slice(2)).then((code) => process.exit(code))
