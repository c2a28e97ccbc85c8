// `npm start`: install what is missing, then serve.
import { ensureInstalled } from './install.mjs'
import { runBun } from './run-bun.mjs'

ensureInstalled({ dev: false })
process.exit(await runBun(['src/main.ts', 'serve', ...process.argv.slice(2)]))
