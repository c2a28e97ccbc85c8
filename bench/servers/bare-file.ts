// The least a download can cost in Bun: one file, handed to the kernel. argv: the file.
import { announce } from './listening.ts'

const path = Bun.argv[2] ?? ''

announce(Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(Bun.file(path)) }))
