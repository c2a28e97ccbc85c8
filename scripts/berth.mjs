// `npm run berth -- <command>`: with what a server needs, which is all that a command needs too.
import './node-version.mjs'
import { ensureInstalled } from './install.mjs'
import { runBun } from './run-bun.mjs'

ensureInstalled({ dev: false })
runBun(['src/main.ts', ...process.argv.slice(2)]).then((code) => process.exit(code))
