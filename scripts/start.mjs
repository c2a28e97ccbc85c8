// `npm start`: installs missing packages, then starts the server.
import './node-version.mjs'
import { ensureInstalled } from './install.mjs'
import { runBerth } from './run-bun.mjs'

ensureInstalled({ dev: false })
runBerth(['serve', ...process.argv.slice(2)]).then((code) => process.exit(code))
