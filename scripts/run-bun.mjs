// Runs the Bun of the lockfile as a child process on the same terminal, passes signals on, and exits with its status.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { bunPath, root } from './install.mjs'

/**
 * Threads of Bun that wait for files. Bun has one for each core by default. With eight on two cores, uploads at once are
 * faster (docs/design/limits-of-speed.md).
 */
const threads = { UV_THREADPOOL_SIZE: '8' }

/**
 * Runs a command of Berth in the folder of the checkout, so that it uses the same data folder from wherever it is called.
 * `src/app/config.ts` searches for the settings file in the folder of the caller first. npm changes to the checkout before
 * it runs a script, and keeps the folder of the caller in `INIT_CWD`.
 */
export function runBerth(args) {
  const { env } = process
  const isRunByNpm = env.npm_package_json === join(root, 'package.json')
  const caller = (isRunByNpm && env.INIT_CWD) || process.cwd()
  return runBun(['src/main.ts', ...args], { env: { ...threads, ...env, BERTH_CALLER_FOLDER: caller } })
}

export function runBun(args, { cwd = root, env = process.env } = {}) {
  return new Promise((resolve) => {
    const child = spawn(bunPath(), args, { cwd, env, stdio: 'inherit' })
    const forward = (signal) => child.kill(signal)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, forward)
    watchParent(() => forward('SIGTERM'))
    child.on('error', (error) => {
      console.error(`Berth: cannot run ${bunPath()}: ${error.message}`)
      resolve(1)
    })
    child.on('exit', (code) => resolve(code === null ? 1 : code))
  })
}

/**
 * npm starts this script through a shell, and a signal that ends npm does not always reach it. When the parent process is
 * gone, the server is stopped too. Otherwise it would keep the port and the data folder.
 */
function watchParent(onGone) {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    onGone()
  }, 250)
  watch.unref()
}
