// `npm run format`, `npm run bench` and `npm run docs`: runs the Bun of the lockfile with the given arguments.
import './node-version.mjs'
import { ensureInstalled } from './install.mjs'
import { runBun } from './run-bun.mjs'

ensureInstalled({ dev: true })
runBun(process.argv.slice(2)).then((code) => process.exit(code))
