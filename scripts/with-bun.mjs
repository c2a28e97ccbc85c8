// `npm run format`, `npm run bench`, `npm run docs`: the pinned Bun with the arguments given.
import { ensureInstalled } from './install.mjs'
import { runBun } from './run-bun.mjs'

ensureInstalled({ dev: true })
process.exit(await runBun(process.argv.slice(2)))
