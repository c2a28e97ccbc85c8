#!/bin/sh
# `berth <command>` in the image. `exec`, so that signals reach the server itself.
exec /app/node_modules/bun/bin/bun.exe /app/src/main.ts "$@"
