// `npm run format`, `npm run bench`, `npm run docs`: the pinned Bun with the arguments given.
import './node-version.mjs'
import { ensureInstalled } from './install.mjs'
import { runBun } from './run-bun.mjs'

ensureInstalled({ dev: true })
runBun(process.argv.slice(2)).then((code) => process.exit(code))
