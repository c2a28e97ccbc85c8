// The minimum for a download in Bun: the kernel sends one file. argv: the file.
import { announce } from './listening.ts'

const path = Bun.argv[2] ?? ''

announce(Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(Bun.file(path)) }))
