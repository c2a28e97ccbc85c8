// Child processes on free ports, each with a temporary folder; both are removed even if the test runner is killed.
import { type ChildProcess, spawn } from 'node:child_process'
import { type AddressInfo, createServer, type Server } from 'node:net'

/** Listens on loopback; gives the port. */
export function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

/** So many at once, so that no two are the same. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(servers.map(listen))
  for (const server of servers) server.close()
  return ports
}

export interface Watch {
  /** The folder is gone when this is done, and so are the processes. */
  end(): Promise<void>
}

/**
 * Ends the processes and removes their folder as soon as we let go of the watch, or are gone ourselves: a test runner
 * says nothing when it leaves. Those that keep nothing worth a farewell may be ended with KILL.
 */
export function outlive(children: readonly ChildProcess[], folder: string, signal: 'TERM' | 'KILL' = 'TERM'): Watch {
  // A zombie process counts as gone.
  const words = `alive() { for pid; do kill -0 "$pid" 2>/dev/null &&
      ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null && return 0; done; return 1; }
    cat >/dev/null; folder=$1; signal=$2; shift 2
    for pid; do kill -"$signal" "$pid" 2>/dev/null; done
    for _ in $(seq 100); do alive "$@" || break; sleep 0.05; done
    for pid; do kill -KILL "$pid" 2>/dev/null; done
    rm -rf "$folder"`
  const pids = children.map(({ pid }) => String(pid))
  const watch = spawn('sh', ['-c', words, 'sh', folder, signal, ...pids], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  for (const child of children) child.unref()
  watch.unref()
  return {
    async end() {
      const isGone = new Promise((resolve) => watch.once('exit', resolve))
      watch.stdin?.end()
      await isGone
    },
  }
}
