// Runs the pinned Bun as a child that shares our terminal, hands it our signals, and ends as it ended.
import { spawn } from 'node:child_process'
import { bunPath, root } from './install.mjs'

export function runBun(args, { cwd = root, env = process.env } = {}) {
  return new Promise((resolve) => {
    const child = spawn(bunPath(), args, { cwd, env, stdio: 'inherit' })
    const forward = (signal) => child.kill(signal)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, forward)
    child.on('error', (error) => {
      console.error(`Berth: cannot run ${bunPath()}: ${error.message}`)
      resolve(1)
    })
    child.on('exit', (code, signal) => resolve(code ?? (signal ? 1 : 0)))
  })
}
