#!/bin/sh
# `berth <command>` in the image. `exec` makes signals reach the server.
exec /app/node_modules/bun/bin/bun.exe /app/src/main.ts "$@"
