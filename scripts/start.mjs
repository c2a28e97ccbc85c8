// `npm start`: installs missing packages, then starts the server.
import './node-version.mjs'
import { ensureInstalled } from './install.mjs'
import { runBun } from './run-bun.mjs'

ensureInstalled({ dev: false })
runBun(['src/main.ts', 'serve', ...process.argv.slice(2)]).then((code) => process.exit(code))
